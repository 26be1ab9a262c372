"""Against PyTorch's own function, and against it in float64."""

import copy
import random

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

import foveal.torch as ft  # noqa: E402


def close(got, want, factor=1.0):
    error = (got.double() - want.double()).abs()
    bound = factor * (1e-5 + 5e-6 * want.double().abs())
    assert torch.all(error <= bound), f"{error.max().item():.2e}"


def random_call(number):
    """(tensors, keywords) of a random call."""
    choose = random.Random(number)
    torch.manual_seed(number)
    batch, heads = choose.choice([1, 2, 3]), choose.choice([1, 2, 4])
    queries, keys = choose.choice([1, 2, 5, 17, 40, 97]), choose.choice([1, 2, 5, 17, 40, 97])
    dim, value_dim = choose.choice([1, 8, 16, 40, 64]), choose.choice([8, 16, 64])
    gqa = choose.random() < 0.2 and heads == 4
    lead = choose.choice([(batch, heads)] * 4 + [(heads,), (), (2, batch, heads)])
    kv_lead = (batch, 2) if gqa and lead == (batch, heads) else lead
    gqa = kv_lead != lead
    shuffled = choose.random() < 0.5

    def tensor(lead, tokens, dim):
        if shuffled and len(lead) == 2:
            return torch.randn(lead[0], tokens, lead[1], dim).transpose(1, 2)
        return torch.randn(*lead, tokens, dim)

    q, k, v = tensor(lead, queries, dim), tensor(kv_lead, keys, dim), tensor(kv_lead, keys, value_dim)
    keywords = {"enable_gqa": True} if gqa else {}
    if choose.random() < 0.3:
        keywords["scale"] = choose.uniform(0.05, 1.0)
    kind = choose.choice(["none", "causal", "bool", "float", "keys"])
    if kind == "causal":
        keywords["is_causal"] = True
    elif kind != "none":
        shape = choose.choice([(queries, keys), (*lead, queries, keys), (1, keys) if kind != "float" else (queries, keys)])
        if len(lead) == 2:
            shape = choose.choice([shape, (batch, 1, queries, keys), (1, heads, queries, keys), (batch, 1, 1, keys)])
        if kind == "float":
            keywords["attn_mask"] = torch.randn(shape)
        else:
            mask = torch.rand(shape) < 0.7
            mask[..., 0] = True  # PyTorch's rows that see nothing are not asked about here
            keywords["attn_mask"] = mask
    return (q, k, v), keywords


@pytest.mark.parametrize("block", range(10))
def test_parity_of_random_calls(block):
    for number in range(50 * block, 50 * block + 50):
        tensors, keywords = random_call(number)
        bias = keywords.get("attn_mask")
        learn = bias is not None and bias.is_floating_point() and number % 2
        ours = [x.clone().requires_grad_() for x in tensors]
        exact = [x.double().requires_grad_() for x in tensors]
        own, wide = dict(keywords), dict(keywords)
        if bias is not None and bias.is_floating_point():
            own["attn_mask"], wide["attn_mask"] = bias.clone().requires_grad_(bool(learn)), bias.double().requires_grad_(bool(learn))
        got = ft.scaled_dot_product_attention(*ours, **own)
        theirs = F.scaled_dot_product_attention(*tensors, **keywords)
        want = F.scaled_dot_product_attention(*exact, **wide)
        assert got.shape == theirs.shape, number
        close(got, theirs, 2)
        close(got, want)
        dout = torch.randn_like(got)
        got.backward(dout)
        want.backward(dout.double())
        for a, b in zip(ours, exact):
            close(a.grad, b.grad, 3)
        if learn:
            close(own["attn_mask"].grad, wide["attn_mask"].grad, 3)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_sixteen_bits(dtype):
    for causal in (False, True):
        torch.manual_seed(3)
        wide = [torch.randn(2, 4, 65, 32) for _ in range(3)]
        narrow = [x.to(dtype) for x in wide]
        exact = [x.double().requires_grad_() for x in narrow]
        naive = [x.clone().requires_grad_() for x in narrow]
        ours = [x.clone().requires_grad_() for x in narrow]
        mask = torch.ones(65, 65, dtype=torch.bool).tril() if causal else None
        want = F.scaled_dot_product_attention(*exact, attn_mask=mask)
        scores = naive[0] @ naive[1].transpose(-1, -2) * 32**-0.5
        scores = scores if mask is None else scores.masked_fill(~mask, float("-inf"))
        plain = scores.softmax(-1) @ naive[2]
        got = ft.scaled_dot_product_attention(*ours, is_causal=causal)
        assert got.dtype is dtype
        assert (got - want).abs().max() <= 2 * (plain - want).abs().max() + 1e-5
        dout = torch.randn_like(want).to(dtype)
        want.backward(dout.double()), plain.backward(dout), got.backward(dout)
        for a, b, c in zip(ours, naive, exact):
            assert (a.grad - c.grad).abs().max() <= 3 * (b.grad - c.grad).abs().max() + 1e-4


def test_rows_that_see_nothing_are_zero():
    q = torch.randn(1, 2, 5, 8, requires_grad=True)
    mask = torch.ones(5, 5, dtype=torch.bool).tril(-1)
    out = ft.scaled_dot_product_attention(q, q, q, attn_mask=mask)
    assert torch.all(out[:, :, 0] == 0) and torch.isfinite(out).all()
    out.sum().backward()
    assert torch.isfinite(q.grad).all()
    least = torch.zeros(5, 5).masked_fill(~mask, torch.finfo(torch.float32).min)
    close(ft.scaled_dot_product_attention(q, q, q, attn_mask=least), out.detach())


def test_log_sum_exp_has_a_gradient():
    q, k, v = (torch.randn(2, 3, 9, 8, requires_grad=True) for _ in range(3))
    out, lse = ft.attention(q, k, v, causal=True, return_lse=True)
    weight = torch.randn(lse.shape, dtype=torch.float64)
    (out.double().square().sum() + (lse * weight).sum()).backward()
    exact = [x.detach().double().requires_grad_() for x in (q, k, v)]
    scores = exact[0] @ exact[1].transpose(-1, -2) * 8**-0.5
    scores = scores.masked_fill(~torch.ones(9, 9, dtype=torch.bool).tril(), float("-inf"))
    loss = (scores.softmax(-1) @ exact[2]).square().sum() + (scores.logsumexp(-1) * weight).sum()
    loss.backward()
    for a, b in zip((q, k, v), exact):
        close(a.grad, b.grad, 10)


def test_what_is_learned_has_gradients():
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 4, 12, 8) for _ in range(3))
    exact = [x.double() for x in (q, k, v)]
    distance = (torch.arange(12)[None] - torch.arange(12)[:, None]).abs().double()
    for name, table in (("sinks", torch.randn(4)), ("alibi", torch.rand(4)), ("alibi", torch.rand(2, 4)), ("bias", torch.randn(1, 4, 12, 12))):
        own, wide = table.clone().requires_grad_(), table.double().requires_grad_()
        ft.attention(q, k, v, **{name: own}).square().sum().backward()
        scores = exact[0] @ exact[1].transpose(-1, -2) * 8**-0.5
        if name == "bias":
            scores = scores + wide
        elif name == "alibi":
            scores = scores - wide.reshape(-1, 4, 1, 1) * distance
        columns = [scores] + ([wide.reshape(1, 4, 1, 1).expand(2, 4, 12, 1)] if name == "sinks" else [])
        weights = torch.cat(columns, -1).softmax(-1)[..., :12]
        (weights @ exact[2]).square().sum().backward()
        close(own.grad, wide.grad, 20)


def test_dropout_is_repeatable_and_has_the_right_mean():
    q = torch.zeros(1, 1, 64, 8)
    v = torch.ones(1, 1, 64, 8)
    torch.manual_seed(5)
    first = ft.scaled_dot_product_attention(q, q, v, dropout_p=0.5)
    torch.manual_seed(5)
    assert torch.equal(first, ft.scaled_dot_product_attention(q, q, v, dropout_p=0.5))
    assert not torch.equal(first, ft.scaled_dot_product_attention(q, q, v, dropout_p=0.5))
    assert abs(first.mean() - 1) < 0.1 and first.std() > 0.01


def operator_arguments():
    make = lambda *shape: torch.randn(*shape, requires_grad=True)  # noqa: E731
    nothing = [None] * 8
    plain = [make(2, 4, 6, 8), make(2, 2, 6, 8), make(2, 2, 6, 8)]
    yield (*plain, *nothing, ft._write({"causal": True}))
    bias = torch.randn(1, 4, 6, 6, requires_grad=True)
    yield (*plain, bias, None, make(4), None, None, None, None, None, ft._write({}))
    mask = torch.rand(2, 1, 1, 6) < 0.8
    yield (*plain, None, mask, None, None, torch.tensor([0, 1]), None, None, None, ft._write({"causal": True}))


def test_opcheck():
    for arguments in operator_arguments():
        torch.library.opcheck(torch.ops.foveal.attend.default, arguments)


def test_compile_full_graph():
    def block(q, k, v, bias):
        a = ft.scaled_dot_product_attention(q, k, v, is_causal=True)
        b, lse = ft.attention(a, k, v, bias=bias, softcap=5.0, return_lse=True)
        return a + b, lse

    compiled = torch.compile(block, fullgraph=True, backend="aot_eager")
    tensors = [torch.randn(2, 4, 16, 8, requires_grad=True) for _ in range(3)] + [torch.randn(1, 4, 16, 16, requires_grad=True)]
    again = [x.detach().clone().requires_grad_() for x in tensors]
    for f, given in ((compiled, tensors), (block, again)):
        out, lse = f(*given)
        (out.square().sum() + lse.sum()).backward()
    assert torch.equal(compiled(*tensors)[0], block(*again)[0])
    for a, b in zip(tensors, again):
        assert torch.allclose(a.grad, b.grad, atol=1e-6)


def test_enable_replaces_the_function_for_modules():
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    x = torch.randn(2, 10, 32)
    want = layer(x)
    before = F.scaled_dot_product_attention
    with ft.enable():
        assert F.scaled_dot_product_attention is not before
        got = layer(x)
        assert F.scaled_dot_product_attention(*[torch.randn(1, 1, 2, 2, dtype=torch.float64)] * 3).dtype is torch.float64
    assert F.scaled_dot_product_attention is before
    assert torch.allclose(got, want, atol=1e-5)


def test_autocast():
    q = torch.randn(1, 2, 9, 8)
    with torch.autocast("cpu", torch.bfloat16):
        assert ft.scaled_dot_product_attention(q, q, q).dtype is torch.bfloat16


def test_a_module_learns():
    torch.manual_seed(0)
    project = torch.nn.Linear(8, 24)
    other = copy.deepcopy(project)
    losses = {}
    for name, layer, attend in (("ours", project, ft.scaled_dot_product_attention), ("theirs", other, F.scaled_dot_product_attention)):
        optimiser = torch.optim.SGD(layer.parameters(), 0.5)
        x, goal = torch.arange(80.0).reshape(1, 1, 10, 8).sin(), torch.arange(80.0).reshape(1, 1, 10, 8).cos()
        for _ in range(10):
            loss = (attend(*layer(x).chunk(3, -1), is_causal=True) - goal).square().mean()
            optimiser.zero_grad(), loss.backward(), optimiser.step()
            losses.setdefault(name, []).append(loss.item())
    assert losses["ours"] == pytest.approx(losses["theirs"], rel=1e-4) and losses["ours"][-1] < losses["ours"][0]


@pytest.mark.parametrize(
    "bad, error, message",
    [
        (lambda q: ft.scaled_dot_product_attention(q.double(), q.double(), q.double()), TypeError, "float64"),
        (lambda q: ft.scaled_dot_product_attention(q, q.half(), q), TypeError, "one type"),
        (lambda q: ft.scaled_dot_product_attention(q, q, q, attn_mask=torch.ones(5, 5), is_causal=True), ValueError, "both"),
        (lambda q: ft.scaled_dot_product_attention(q, q[:, :1].expand(-1, 3, -1, -1), q), ValueError, "heads"),
        (lambda q: ft.scaled_dot_product_attention(q, q, q, attn_mask=torch.ones(5, 5, dtype=torch.int64)), TypeError, "bool"),
        (lambda q: ft.scaled_dot_product_attention(q, q, q, dropout_p=1.5), ValueError, "dropout"),
        (lambda q: ft.attention(q, q, q, bias=torch.ones(5, 5), alibi=torch.ones(2)), ValueError, "biases"),
        (lambda q: ft.attention(q.to("meta"), q, q), ValueError, "meta"),
        (lambda q: ft.attention(q, q[..., :3], q), ValueError, "shape"),
    ],
)
def test_bad_input(bad, error, message):
    with pytest.raises(error, match=message):
        bad(torch.randn(1, 2, 5, 8))


class Batches(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, at):
        x = torch.full((1, 4, 256, 64), float(at))
        return ft.scaled_dot_product_attention(x, x, x)[0, 0, 0]


def test_in_workers_of_a_data_loader():
    q = torch.randn(1, 4, 256, 64)
    ft.scaled_dot_product_attention(q, q, q)  # makes the pool that the workers do not inherit
    loader = torch.utils.data.DataLoader(Batches(), batch_size=2, num_workers=2, multiprocessing_context="fork")
    rows = torch.cat(list(loader))
    assert torch.allclose(rows[:, 0], torch.arange(8.0))
