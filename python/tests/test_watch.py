"""Watching models."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from test_hf import language_model  # noqa: E402

import foveal  # noqa: E402


@pytest.mark.parametrize("model_type", ["llama", "gpt2", "gemma2", "gpt_oss", "mistral", "qwen3", "deepseek_v3"])
@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_weights_are_those_of_eager(model_type, implementation):
    if implementation == "sdpa" and model_type in ("gpt_oss", "gemma2"):
        pytest.skip("has no sdpa")
    text = torch.randint(3, 90, (2, 14), generator=torch.Generator().manual_seed(4))
    mask = torch.ones_like(text)
    mask[1, -4:] = 0
    want = language_model(model_type, "eager")(input_ids=text, attention_mask=mask, output_attentions=True).attentions
    model = language_model(model_type, implementation)
    with foveal.watch(model) as trace, torch.no_grad():
        model(input_ids=text, attention_mask=mask)
    assert model.config._attn_implementation == implementation
    assert trace.kinds == ["decoder"] and len(trace.layers) == len(want)
    for layer, weights in enumerate(want):
        for head in range(weights.shape[1]):
            assert np.abs(trace.weights(layer, head) - weights[0, head].detach().numpy()).max() < 1e-5
            real = trace.weights(layer, head, sequence=1)[:10]
            assert np.abs(real - weights[1, head, :10].detach().numpy()).max() < 1e-5
    tile = trace.tile(1, 2, (3, 7), (0, 5))
    assert np.array_equal(tile, trace.weights(1, 2)[3:7, 0:5])
    assert np.allclose(trace.map(1, 2, size=(7, 7), pool="sum").sum(), trace.weights(1, 2).sum(), rtol=1e-5)


def test_an_encoder_decoder():
    model = language_model("bart", "eager")
    source, target = torch.randint(3, 90, (1, 11)), torch.randint(3, 90, (1, 6))
    want = model(input_ids=source, decoder_input_ids=target, output_attentions=True)
    with foveal.watch(model) as trace:
        model(input_ids=source, decoder_input_ids=target)
    assert trace.kinds == ["cross", "decoder", "encoder"]
    for kind, weights in (("encoder", want.encoder_attentions), ("decoder", want.decoder_attentions), ("cross", want.cross_attentions)):
        for layer in range(2):
            assert np.abs(trace.weights(layer, 1, kind=kind) - weights[layer][0, 1].detach().numpy()).max() < 1e-5
    with pytest.raises(foveal.Error, match="kind"):
        trace.weights(0, 0)


@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_generation_is_one_trace(cache):
    model = language_model("llama", "sdpa")
    prompt = torch.randint(3, 90, (1, 7))
    keywords = {"cache_implementation": "static", "disable_compile": True} if cache == "static" else {}
    with foveal.watch(model) as trace:
        written = model.generate(prompt, max_new_tokens=5, min_new_tokens=5, do_sample=False, **keywords)
    want = language_model("llama", "eager")(input_ids=written[:, :-1], output_attentions=True).attentions
    assert trace.shape(0)[2:] == (11, 11)
    for layer, weights in enumerate(want):
        assert np.abs(trace.weights(layer, 3) - weights[0, 3].detach().numpy()).max() < 1e-5


def test_layers_can_be_chosen():
    model = language_model("llama", "sdpa")
    with foveal.watch(model, layers=[1]) as trace:
        model(input_ids=torch.randint(3, 90, (1, 7)))
    assert trace.layers == [("decoder", 1)]
    with pytest.raises(foveal.Error, match="not kept"):
        trace.weights(0, 0)


def test_analysis():
    model = language_model("gpt2", "eager")
    text = torch.randint(3, 90, (1, 13))
    attentions = model(input_ids=text, output_attentions=True).attentions
    with foveal.watch(model) as trace:
        model(input_ids=text)
    weights = [layer[0].detach().double().numpy() for layer in attentions]
    rolled = np.eye(13)
    for layer in weights:
        rolled = (0.5 * layer.mean(0) + 0.5 * np.eye(13)) @ rolled
    assert np.abs(trace.rollout() - rolled).max() < 1e-5
    best = trace.top(1, 2, 3)[12]
    order = np.argsort(-weights[1][2, 12])[:3]
    assert [key for key, _ in best] == order.tolist()
    scores = next(s for s in trace.head_scores() if (s["layer"], s["head"]) == (1, 2))
    a = weights[1][2]
    assert scores["confidence"] == pytest.approx(a.max(1).mean(), abs=1e-5)
    assert scores["previous"] == pytest.approx(np.diag(a, -1).mean(), abs=1e-5)
    cell = trace.cell(1, 2, 5, 3)
    assert cell["weight"] == pytest.approx(a[5, 3], abs=1e-5)
    # ‖w·v·W_o‖
    arrays = trace.arrays(1)
    output = model.transformer.h[1].attn.c_proj.weight.detach().numpy()
    dim = arrays["v"].shape[-1]
    f = arrays["v"][0, 2] @ output[2 * dim : 3 * dim]
    assert np.abs(trace.norms(1, 2) - a * np.linalg.norm(f, axis=1)).max() < 1e-5


def test_modules_of_pytorch():
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 3).eval()
    x = torch.randn(2, 9, 32)
    want = model(x)
    with foveal.watch(model) as trace, torch.no_grad():
        got = model(x)
    assert torch.allclose(got, want, atol=1e-5) and len(trace.layers) == 3
    attention = torch.nn.MultiheadAttention(32, 4, batch_first=True)
    _, weights = attention(x, x, x, average_attn_weights=False)
    with foveal.watch(attention) as trace:
        _, mean = attention(x, x, x)
    assert torch.allclose(mean, weights.mean(1), atol=1e-5)
    assert np.abs(trace.weights(0, 2, sequence=1) - weights[1, 2].detach().numpy()).max() < 1e-5


def test_plain_calls():
    class Mine(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)

    x = torch.randn(1, 2, 6, 8)
    with foveal.watch(Mine()) as trace:
        trace_of = Mine()(x)
    want = (x @ x.transpose(-1, -2) * 8**-0.5).masked_fill(~torch.ones(6, 6, dtype=torch.bool).tril(), float("-inf")).softmax(-1)
    assert trace_of.shape == x.shape
    assert np.abs(trace.weights(0, 1) - want[0, 1].numpy()).max() < 1e-5


def test_files(tmp_path):
    model = language_model("llama", "sdpa")
    with foveal.watch(model, tokens=["the", "cat", "<sat>", "한국어", "."]) as trace:
        model(input_ids=torch.randint(3, 90, (1, 5)))
    assert trace.tokens[3] == "한국어"
    for ending, begins in (("html", b"<!doctype html>"), ("svg", b"<svg"), ("png", b"\x89PNG"), ("json", b"{"), ("csv", b"")):
        trace.save(tmp_path / f"x.{ending}", layer=1, head=3)
        assert (tmp_path / f"x.{ending}").read_bytes().startswith(begins)
    values = json.loads((tmp_path / "x.json").read_text())
    assert np.allclose(values["values"], trace.weights(1, 3), atol=1e-6) if "values" in values else values
    with pytest.raises(ValueError, match="svg"):
        trace.save(tmp_path / "x.gif")


def test_the_widget_answers(tmp_path):
    pytest.importorskip("anywidget")
    model = language_model("llama", "sdpa")
    with foveal.watch(model) as trace:
        model(input_ids=torch.randint(3, 90, (1, 9)))
    widget = trace.show()
    sent = []
    widget.send = lambda content, buffers=None: sent.append((content, buffers))
    widget._answer({"id": 0, "request": {"kind": "meta"}})
    meta = sent[-1][0]["head"]
    assert meta["can"] == ["overview", "cell", "neurons", "heads"] and len(meta["runs"]) == 1
    at = {"run": meta["runs"][0]["id"], "site": "decoder", "layer": 1, "head": 2}
    widget._answer({"id": 1, "request": {"kind": "tile", "at": at, "rows": [2, 6], "cols": [0, 5]}})
    content, buffers = sent[-1]
    assert content["id"] == 1 and not content["part"]
    tile = np.frombuffer(buffers[0], np.float32).reshape(4, 5)
    assert np.array_equal(tile, trace.tile(1, 2, (2, 6), (0, 5)))
    widget._answer({"id": 2, "request": {"kind": "tile", "at": {**at, "layer": 99}, "rows": [0, 1], "cols": [0, 1]}})
    assert sent[-1][0]["head"]["error"]["code"] == "request"
    widget._on_message(None, {"id": 3, "cancel": True}, None)
    sent.clear()
    widget._answer({"id": 3, "request": {"kind": "meta"}})
    assert not sent
    data, _ = widget._repr_mimebundle_()
    assert "text/html" in data and "application/vnd.jupyter.widget-view+json" in data


def test_nothing_was_attended_to():
    with foveal.watch(torch.nn.Linear(2, 2)) as trace:
        pass
    assert "nothing" in repr(trace)
    with pytest.raises(foveal.Error, match="within the block"):
        trace.weights()
