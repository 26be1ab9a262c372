"""The functions of flash_attn against a naive computation, by that package's own rule: the error is at most twice that of the naive
way in the same type, of gradients three times."""

import math
import random
import sys

import pytest

torch = pytest.importorskip("torch")

import foveal.flash_attn as fa  # noqa: E402


def naive(q, k, v, *, causal=False, window=(-1, -1), softcap=0.0, slopes=None, scale=None, key_mask=None, wide=True):
    """(out, lse) of [batch, tokens, heads, dim]; ``wide``: in float32, else step by step in the type of q."""
    dtype = q.dtype
    if wide:
        q, k, v = q.double(), k.double(), v.double()
    group = q.shape[2] // k.shape[2]
    k, v = k.repeat_interleave(group, 2), v.repeat_interleave(group, 2)
    t, s = q.shape[1], k.shape[1]
    scores = torch.einsum("bthd,bshd->bhts", q, k) * (scale if scale is not None else 1 / math.sqrt(q.shape[-1]))
    if softcap:
        scores = torch.tanh(scores / softcap) * softcap
    distance = torch.arange(s)[None] - (torch.arange(t)[:, None] + s - t)
    if slopes is not None:
        scores = scores - slopes.to(scores.dtype).reshape(-1, slopes.shape[-1], 1, 1) * distance.abs().to(scores.dtype)
    visible = torch.ones(t, s, dtype=torch.bool)
    left, right = window
    right = 0 if causal else right
    if left >= 0:
        visible &= distance >= -left
    if right >= 0:
        visible &= distance <= right
    visible = visible[None, None] if key_mask is None else visible[None, None] & key_mask[:, None, None]
    scores = scores.masked_fill(~visible, float("-inf"))
    weights = torch.nan_to_num(scores.softmax(-1), 0.0) * visible
    lse = scores.logsumexp(-1)
    lse = lse.masked_fill(lse == float("-inf"), float("inf"))
    return torch.einsum("bhts,bshd->bthd", weights, v).to(q.dtype if wide else dtype), lse


def options(choose, heads, batch):
    given = {"causal": choose.random() < 0.4}
    if choose.random() < 0.4:
        given["window_size"] = choose.choice([(3, 0), (-1, 2), (5, -1), (0, 0), (7, 7)])
    if choose.random() < 0.2:
        given["softcap"] = choose.choice([1.0, 15.0])
    if choose.random() < 0.3:
        given["alibi_slopes"] = torch.rand(choose.choice([(heads,), (batch, heads)]))
    if choose.random() < 0.2:
        given["softmax_scale"] = choose.uniform(0.05, 0.5)
    own = {"causal": given["causal"], "window": given.get("window_size", (-1, -1)), "softcap": given.get("softcap", 0.0)}
    return given, {**own, "slopes": given.get("alibi_slopes"), "scale": given.get("softmax_scale")}


def compare(got, exact, plain, factor=2):
    bound = factor * (plain.double() - exact.double()).abs().max() + 2e-5
    error = (got.double() - exact.double()).abs().max() if got.numel() else 0.0
    assert error <= bound, f"{error:.2e} > {bound:.2e}"


@pytest.mark.parametrize("block", range(6))
def test_random_calls(block):
    for number in range(30 * block, 30 * block + 30):
        choose = random.Random(number)
        torch.manual_seed(number)
        batch, groups = choose.choice([1, 2, 3]), choose.choice([1, 2])
        heads = groups * choose.choice([1, 2, 3])
        t, s, d = choose.choice([1, 3, 16, 33, 70]), choose.choice([1, 5, 16, 40, 70]), choose.choice([16, 32, 64])
        dtype = choose.choice([torch.float32, torch.float16, torch.bfloat16])
        given, own = options(choose, heads, batch)
        kind = choose.choice(["plain", "kv", "qkv"])
        if kind == "qkv":
            s, heads, groups = t, heads, heads
        q, k, v = (torch.randn(batch, n, h, d).to(dtype) for n, h in ((t, heads), (s, groups), (s, groups)))
        ours, exact, plain = ([x.clone().requires_grad_() for x in (q, k, v)] for _ in range(3))
        if kind == "qkv":
            out, lse, _ = fa.flash_attn_qkvpacked_func(torch.stack(ours, 2), return_attn_probs=True, **given)
        elif kind == "kv":
            out, lse, _ = fa.flash_attn_kvpacked_func(ours[0], torch.stack(ours[1:], 2), return_attn_probs=True, **given)
        else:
            out, lse, weights = fa.flash_attn_func(*ours, return_attn_probs=True, **given)
            assert weights.shape == (batch, heads, t, s)
        want, want_lse = naive(*exact, **own)
        rough, _ = naive(*plain, **own, wide=False)
        assert out.dtype is dtype and out.is_contiguous()
        compare(out, want, rough)
        assert lse.shape == (batch, heads, t) and torch.allclose(lse.double(), want_lse, atol=1e-3), number
        dout = torch.randn_like(out)
        out.backward(dout), want.backward(dout.double()), rough.backward(dout)
        for a, b, c in zip(ours, exact, plain):
            compare(a.grad, b.grad, torch.nan_to_num(c.grad), 3)


@pytest.mark.parametrize("block", range(3))
def test_random_calls_of_sequences_without_padding(block):
    for number in range(20 * block, 20 * block + 20):
        choose = random.Random(1000 + number)
        torch.manual_seed(number)
        groups = choose.choice([1, 2])
        heads, d = groups * choose.choice([1, 2]), choose.choice([16, 32])
        batch = choose.choice([1, 3, 4])
        lengths_q = [choose.choice([0, 1, 7, 20, 50]) for _ in range(batch)]
        lengths_k = [choose.choice([0, 1, 9, 20, 45]) for _ in range(batch)]
        kind = choose.choice(["plain", "kv", "qkv", "paged"])
        if kind == "qkv":
            lengths_k, groups = lengths_q, heads
        if sum(lengths_q) == 0 or sum(lengths_k) == 0:
            lengths_q[0] = lengths_k[0] = 5
        dtype = choose.choice([torch.float32, torch.bfloat16])
        given, own = options(choose, heads, batch)
        starts = [torch.tensor([0, *torch.tensor(x).cumsum(0).tolist()], dtype=torch.int32) for x in (lengths_q, lengths_k)]
        q = torch.randn(sum(lengths_q), heads, d).to(dtype)
        k, v = (torch.randn(sum(lengths_k), groups, d).to(dtype) for _ in range(2))
        sizes = (*starts, max(lengths_q), max(lengths_k))
        if kind == "qkv":
            out, lse, _ = fa.flash_attn_varlen_qkvpacked_func(
                torch.stack((q, k, v), 1), starts[0], max(lengths_q), return_attn_probs=True, **given
            )
        elif kind == "kv":
            out, lse, _ = fa.flash_attn_varlen_kvpacked_func(q, torch.stack((k, v), 1), *sizes, return_attn_probs=True, **given)
        elif kind == "paged":
            table, pages_k, pages_v = in_pages(k, v, lengths_k, choose.choice([4, 16]), choose)
            out, lse, _ = fa.flash_attn_varlen_func(q, pages_k, pages_v, *sizes, block_table=table, return_attn_probs=True, **given)
        else:
            out, lse, _ = fa.flash_attn_varlen_func(q, k, v, *sizes, return_attn_probs=True, **given)
        assert out.shape == q.shape and lse.shape == (heads, len(q))
        for b in range(batch):
            (a, z), (c, e) = (starts[0][b : b + 2].tolist(), starts[1][b : b + 2].tolist())
            if a == z:
                continue
            mine = {**own, "slopes": own["slopes"][b] if own["slopes"] is not None and own["slopes"].dim() == 2 else own["slopes"]}
            parts = (q[None, a:z], k[None, c:e], v[None, c:e])
            if c == e:
                assert torch.all(out[a:z] == 0)
                continue
            want, want_lse = naive(*parts, **mine)
            compare(out[a:z], want[0], naive(*parts, **mine, wide=False)[0][0])
            assert torch.allclose(lse[:, a:z].double(), want_lse[0], atol=1e-3)


def in_pages(k, v, lengths, size, choose):
    """Sequences as pages in any order."""
    most = max(1, -(-max(lengths) // size))
    count = len(lengths) * most + 2
    order = list(range(count))
    choose.shuffle(order)
    table = torch.tensor(order[: len(lengths) * most], dtype=torch.int32).reshape(len(lengths), most)
    pages = [torch.randn(count, size, *x.shape[1:]).to(x.dtype) for x in (k, v)]
    at = 0
    for b, length in enumerate(lengths):
        for i in range(length):
            for page, x in zip(pages, (k, v)):
                page[table[b, i // size], i % size] = x[at + i]
        at += length
    return table, *pages


def turned(x, cos, sin, positions, interleaved):
    """Rotary positions, one token at a time."""
    out, half = x.clone(), cos.shape[-1]
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            for m in range(half):
                p, (a, c) = int(positions[b][i]), (2 * m, 2 * m + 1) if interleaved else (m, m + half)
                out[b, i, :, a] = x[b, i, :, a] * cos[p, m] - x[b, i, :, c] * sin[p, m]
                out[b, i, :, c] = x[b, i, :, c] * cos[p, m] + x[b, i, :, a] * sin[p, m]
    return out


@pytest.mark.parametrize("block", range(3))
def test_random_calls_with_a_cache(block):
    for number in range(20 * block, 20 * block + 20):
        choose = random.Random(2000 + number)
        torch.manual_seed(number)
        batch, groups, d, room = choose.choice([1, 2, 3]), choose.choice([1, 2]), 16, 48
        heads, t = groups * choose.choice([1, 2]), choose.choice([1, 3, 8])
        q = torch.randn(batch, t, heads, d)
        lengths = torch.tensor([choose.randrange(8, room - 10) for _ in range(batch)], dtype=torch.int32)
        given, own = options(choose, heads, batch)
        paged, chosen, pads = choose.random() < 0.3, choose.random() < 0.3, choose.random() < 0.3
        stored = batch + 2 if chosen and not paged else batch
        k_cache, v_cache = (torch.randn(stored, room, groups, d) for _ in range(2))
        keywords = {"cache_seqlens": lengths}
        rows = torch.arange(batch)
        if chosen and not paged:
            rows = torch.randperm(stored)[:batch]
            keywords["cache_batch_idx"] = rows.to(torch.int32)
        if pads and not paged:
            keywords["cache_leftpad"] = torch.tensor([choose.randrange(0, 5) for _ in range(batch)], dtype=torch.int32)
        left = keywords.get("cache_leftpad", torch.zeros(batch, dtype=torch.int32))
        keys, values = k_cache[rows].clone(), v_cache[rows].clone()
        if choose.random() < 0.6:
            k, v = (torch.randn(batch, t, groups, d) for _ in range(2))
            keywords.update(k=k, v=v)
            total = lengths + t
        else:
            total = lengths
        mine = q
        if choose.random() < 0.4:
            angle = torch.arange(64)[:, None] * 10.0 ** -torch.arange(4)
            cos, sin, interleaved = angle.cos(), angle.sin(), choose.random() < 0.5
            keywords.update(rotary_cos=cos, rotary_sin=sin, rotary_interleaved=interleaved)
            by_distance = own["causal"] or own["window"] != (-1, -1)
            base = [[int(n - p)] * t for n, p in zip(lengths, left)]
            ahead = [[p + (i if by_distance else 0) for i, p in enumerate(row)] for row in base]
            mine = turned(q, cos, sin, ahead, interleaved)
            if "k" in keywords:
                k = turned(keywords["k"], cos, sin, [[p + i for i, p in enumerate(row)] for row in base], interleaved)
        if "k" in keywords:
            for b in range(batch):
                keys[b, lengths[b] : total[b]], values[b, lengths[b] : total[b]] = k[b], v[b]
        if paged:
            size = 8
            table = torch.randperm(batch * room // size + 1)[: batch * room // size].reshape(batch, -1).to(torch.int32)
            pages = [torch.zeros(batch * room // size + 1, size, groups, d) for _ in range(2)]
            for page, cache in zip(pages, (k_cache, v_cache)):
                page[table.long()] = cache.reshape(batch, -1, size, groups, d)
            k_cache, v_cache = pages
            keywords["block_table"] = table
        out, lse = fa.flash_attn_with_kvcache(q, k_cache, v_cache, return_softmax_lse=True, **keywords, **given)
        for b in range(batch):
            slopes = own["slopes"][b] if own["slopes"] is not None and own["slopes"].dim() == 2 else own["slopes"]
            seen = slice(int(left[b]), int(total[b]))
            want, want_lse = naive(mine[b : b + 1], keys[b : b + 1, seen], values[b : b + 1, seen], **{**own, "slopes": slopes})
            assert torch.allclose(out[b].double(), want[0], atol=3e-5), number
            assert torch.allclose(lse[b].double(), want_lse[0], atol=1e-3), number
        # In place.
        if "k" in keywords:
            stored = k_cache[table.long()].flatten(1, 2) if paged else k_cache[rows]
            for b in range(batch):
                assert torch.allclose(stored[b, lengths[b] : total[b]], keys[b, lengths[b] : total[b]], atol=1e-6)


def test_dropout_and_errors():
    q = torch.randn(1, 8, 2, 16)
    torch.manual_seed(1)
    a = fa.flash_attn_func(q, q, q, dropout_p=0.3)
    torch.manual_seed(1)
    assert torch.equal(a, fa.flash_attn_func(q, q, q, dropout_p=0.3))
    with pytest.raises(ValueError, match="room"):
        fa.flash_attn_with_kvcache(q, torch.zeros(1, 9, 2, 16), torch.zeros(1, 9, 2, 16), q, q, cache_seqlens=5)
    with pytest.raises(RuntimeError, match="gradient"):
        fa.flash_attn_with_kvcache(q.requires_grad_(), torch.zeros(1, 9, 2, 16), torch.zeros(1, 9, 2, 16))


def test_padding_and_back():
    x = torch.randn(3, 7, 4, requires_grad=True)
    mask = torch.tensor([[1] * 7, [1] * 3 + [0] * 4, [0] * 7])
    flat, indices, starts, longest, used = fa.bert_padding.unpad_input(x, mask)
    assert flat.shape == (10, 4) and starts.tolist() == [0, 7, 10, 10] and longest == 7 and used.tolist() == [7, 3, 0]
    back = fa.bert_padding.pad_input(flat, indices, 3, 7)
    assert torch.equal(back, x * mask[..., None])
    back.sum().backward()
    assert torch.equal(x.grad, mask[..., None].expand(3, 7, 4).float())


def test_install():
    if "flash_attn" in sys.modules:
        pytest.skip("the real one is here")
    assert fa.install() and fa.install()
    try:
        import flash_attn
        from flash_attn.bert_padding import unpad_input  # noqa: F401
        from flash_attn.flash_attn_interface import flash_attn_varlen_func  # noqa: F401

        assert flash_attn.flash_attn_func is fa.flash_attn_func and flash_attn.__version__.startswith("2.8")
    finally:
        for name in [n for n in sys.modules if n.split(".")[0] == "flash_attn"]:
            del sys.modules[name]
