"""Models of transformers: foveal against eager."""

import json
import pathlib

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from architectures import difference, shrink  # noqa: E402
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, CONFIG_MAPPING  # noqa: E402

import foveal  # noqa: E402
import foveal.hf  # noqa: E402

foveal.hf.register()
PASSING = json.loads((pathlib.Path(__file__).parent / "architectures.json").read_text())
NAMED = (
    "t5 bart whisper gemma2 gemma3_text gpt_oss llama4_text deepseek_v3 qwen3 mistral mixtral phi3 gpt_neox modernbert roberta "
    "vit dinov2 clip siglip llama gpt2 bert"
).split()


def test_enough_architectures():
    assert len(PASSING) >= 60
    assert set(NAMED) <= set(PASSING), set(NAMED) - set(PASSING)


@pytest.mark.parametrize("model_type", PASSING)
def test_states_and_gradients(model_type):
    states, gradients = difference(model_type)
    assert states <= 1e-4 and gradients <= 1e-4


def language_model(model_type, implementation):
    torch.manual_seed(3)
    config = shrink(CONFIG_MAPPING[model_type])
    auto = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    return auto.from_config(config, attn_implementation=implementation).eval()


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("model_type", ["llama", "gpt2", "gemma2", "gemma3_text", "mistral", "qwen3", "gpt_oss", "gpt_neox", "bart", "t5"])
def test_generation(model_type, cache):
    prompt = torch.randint(3, 90, (2, 9), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(prompt)
    mask[1, :4] = 0  # padding on the left
    written = []
    for implementation in ("eager", "foveal"):
        model = language_model(model_type, implementation)
        if cache == "static" and model.config.is_encoder_decoder:
            pytest.skip("encoder-decoders have caches of their own")
        keywords = {"cache_implementation": "static", "disable_compile": True} if cache == "static" else {}
        model.generation_config.decoder_start_token_id = 1
        written.append(
            model.generate(prompt, attention_mask=mask, max_new_tokens=12, min_new_tokens=12, do_sample=False, **keywords)
        )
    assert torch.equal(*written)


def test_training_steps():
    losses = []
    for implementation in ("eager", "foveal"):
        model = language_model("llama", implementation).train()
        optimiser = torch.optim.AdamW(model.parameters(), 1e-2)
        text = torch.arange(40).reshape(2, 20) % 7 + 3
        for _ in range(6):
            loss = model(input_ids=text, labels=text).loss
            loss.backward()
            optimiser.step()
            optimiser.zero_grad()
            losses.append(loss.item())
    assert losses[:6] == pytest.approx(losses[6:], rel=1e-3) and losses[5] < losses[0]


def test_packed_sequences():
    text = torch.randint(3, 90, (1, 21), generator=torch.Generator().manual_seed(2))
    positions = torch.cat([torch.arange(8), torch.arange(3), torch.arange(10)])[None]
    for model_type in ("llama", "mistral"):
        eager, ours = (language_model(model_type, x) for x in ("eager", "foveal"))
        keywords = {"input_ids": text, "position_ids": positions, "use_cache": False}
        got = ours(**keywords).logits
        assert torch.allclose(got, eager(**keywords).logits, atol=1e-4)
        alone = ours(input_ids=text[:, 11:], use_cache=False).logits
        assert torch.allclose(got[:, 11:], alone, atol=1e-4)


def test_no_dense_mask_is_made():
    """16,384 tokens with padding: a mask of pairs alone would take 268 MB."""
    import resource

    model = language_model("mistral", "foveal")
    model.config.max_position_embeddings = 1 << 15
    text = torch.randint(3, 90, (1, 16_384))
    mask = torch.ones_like(text)
    mask[:, :5] = 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with torch.no_grad():
        model(input_ids=text, attention_mask=mask, logits_to_keep=1)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < 250


def test_compile():
    model = language_model("llama", "foveal")
    text = torch.randint(3, 90, (2, 9))
    want = model(input_ids=text, use_cache=False).logits
    got = torch.compile(model, fullgraph=True, backend="aot_eager")(input_ids=text, use_cache=False).logits
    assert torch.allclose(got, want, atol=1e-5)


def test_a_custom_mask_is_passed_on():
    eager, ours = (language_model("llama", x) for x in ("eager", "foveal"))
    text = torch.randint(3, 90, (1, 12))
    visible = torch.ones(1, 1, 12, 12, dtype=torch.bool).tril()
    visible[..., 5:, 2] = False
    additive = torch.zeros(1, 1, 12, 12).masked_fill(~visible, torch.finfo(torch.float32).min)
    want = eager(input_ids=text, attention_mask=additive).logits
    assert torch.allclose(ours(input_ids=text, attention_mask=additive).logits, want, atol=1e-4)
    assert torch.allclose(ours(input_ids=text, attention_mask=visible).logits, want, atol=1e-4)


def test_output_attentions():
    eager, ours = (language_model("gemma2", x) for x in ("eager", "foveal"))
    text = torch.randint(3, 90, (2, 12))
    want = eager(input_ids=text, output_attentions=True).attentions
    got = ours(input_ids=text, output_attentions=True).attentions
    assert len(got) == len(want) and all(torch.allclose(a, b, atol=1e-5) for a, b in zip(got, want))


def test_masks_cannot_be_cut_anyhow():
    described = foveal.hf.describe_mask(1, 4, 9, q_offset=5)
    assert described.shape == (1, 1, 4, 9) and described[:, :, :, :9] is described
    with pytest.raises(NotImplementedError):
        described[:, :, 1:2]
