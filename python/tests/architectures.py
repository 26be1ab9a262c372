"""Tiny random models of every architecture of transformers that uses the attention interface.

``python tests/architectures.py`` tries all of them, ``foveal`` against ``eager``, and writes the table of ``architectures.md``.
"""

from __future__ import annotations

import inspect
import json
import pathlib
import signal
import sys
import warnings

import torch
from transformers import CONFIG_MAPPING, MODEL_MAPPING, PreTrainedConfig
from transformers.utils import logging

from foveal import hf

logging.set_verbosity_error()
warnings.filterwarnings("ignore")

#: Sizes by the names that configurations have for them.
SIZES = {
    "hidden_size": 64, "d_model": 64, "n_embd": 64, "dim": 64, "embed_dim": 64, "width": 64, "embedding_size": 64,
    "num_hidden_layers": 2, "n_layer": 2, "num_layers": 2, "n_layers": 2, "encoder_layers": 2, "decoder_layers": 2,
    "num_decoder_layers": 2, "num_encoder_layers": 2, "depth": 2, "layers": 2,
    "num_attention_heads": 4, "n_head": 4, "n_heads": 4, "num_heads": 4, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "heads": 4, "attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "d_kv": 16, "global_head_dim": 16,
    "intermediate_size": 96, "ffn_dim": 96, "d_ff": 96, "n_inner": 96, "encoder_ffn_dim": 96, "decoder_ffn_dim": 96,
    "hidden_dim": 96, "moe_intermediate_size": 48, "shared_expert_intermediate_size": 48, "intermediate_size_mlp": 96,
    "feed_forward_dim": 96, "expert_intermediate_size": 48, "shared_intermediate_size": 48,
    "vocab_size": 99, "max_position_embeddings": 128, "n_positions": 128, "max_target_positions": 64, "max_source_positions": 32,
    "num_local_experts": 4, "num_experts": 4, "n_routed_experts": 4, "moe_num_experts": 4, "num_experts_per_tok": 2,
    "n_shared_experts": 1, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1, "num_expert_group": 1,
    "q_lora_rank": 24, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 16,
    "sliding_window": 6, "attention_chunk_size": 8, "local_attention": 6, "rotary_dim": 8,
    "image_size": 32, "patch_size": 8, "num_channels": 3, "temporal_patch_size": 1,
    "num_mel_bins": 16, "projection_dim": 32, "vision_embed_dim": 64, "vocab_size_per_layer_input": 99,
    "hidden_size_per_layer_input": 16, "num_kv_shared_layers": 0, "type_vocab_size": 2, "num_nextn_predict_layers": 0,
    "dropout": 0.0, "attention_dropout": 0.0, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
    "attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "dropout_rate": 0.0, "hidden_dropout": 0.0,
    "activation_dropout": 0.0, "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0, "drop_path_rate": 0.0, "layerdrop": 0.0,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "window_size": 4,
}
SEED = 7
MOST_PARAMETERS = 40e6
#: Seconds for one architecture.
PATIENCE = 60


def shrink(config_class: type) -> PreTrainedConfig:
    """A configuration of this class with the sizes above."""
    known = inspect.signature(config_class.__init__).parameters
    names = set(known) | set(getattr(config_class, "__annotations__", {}))
    for base in config_class.__mro__:
        names |= set(getattr(base, "__annotations__", {}))
    default = config_class()
    given = {name: size for name, size in SIZES.items() if name in names or hasattr(default, name)}
    attribute_map = getattr(config_class, "attribute_map", {})
    given = {name: size for name, size in given.items() if name not in attribute_map}
    for name in list(given):
        if isinstance(getattr(default, name, None), (list, tuple)):
            del given[name]
    if getattr(default, "num_key_value_heads", 0) == getattr(default, "num_attention_heads", 1):
        given.pop("num_key_value_heads", None)
        if "num_key_value_heads" in names:
            given["num_key_value_heads"] = 4
    if "qk_rope_head_dim" in given and "head_dim" in given:
        given["head_dim"] = given["qk_rope_head_dim"]
    if getattr(default, "sliding_window", 1) is None:
        given.pop("sliding_window", None)
    if getattr(default, "q_lora_rank", 1) is None:
        given.pop("q_lora_rank", None)
    for name, sub in (getattr(config_class, "sub_configs", None) or {}).items():
        if hasattr(sub, "model_type") and sub.model_type in CONFIG_MAPPING:
            given[name] = shrink(sub).to_dict()
    for name in ("layer_types", "no_rope_layers", "mlp_layer_types", "indexer_types"):
        values = getattr(default, name, None)
        if isinstance(values, (list, tuple)):
            kinds = list(dict.fromkeys(values))
            given[name] = (kinds * 2)[:2] if len(kinds) > 1 else [values[0]] * 2
    try:
        return config_class(**given)
    except Exception:
        for name in ("layer_types", "no_rope_layers", "mlp_layer_types", "indexer_types"):
            given.pop(name, None)
        return config_class(**given)


def inputs_of(model: torch.nn.Module, config: PreTrainedConfig) -> dict[str, torch.Tensor]:
    """What the model's forward asks for."""
    generator = torch.Generator().manual_seed(SEED)
    known = inspect.signature(model.forward).parameters
    given: dict[str, torch.Tensor] = {}
    tokens = 20
    vocabulary = getattr(config.get_text_config(), "vocab_size", 99) or 99
    ids = lambda: torch.randint(3, min(vocabulary, 95), (2, tokens), generator=generator)  # noqa: E731
    main = getattr(model, "main_input_name", "input_ids")
    if main == "pixel_values" or ("pixel_values" in known and "input_ids" not in known):
        size = getattr(getattr(config, "vision_config", config), "image_size", 32)
        size = size if isinstance(size, int) else size[0]
        channels = getattr(getattr(config, "vision_config", config), "num_channels", 3)
        given["pixel_values"] = torch.randn(2, channels, size, size, generator=generator)
        if "input_ids" in known:
            given["input_ids"] = ids()
    elif main in ("input_features",):
        given["input_features"] = torch.randn(2, config.num_mel_bins, 64, generator=generator)
    elif main == "input_values":
        given["input_values"] = torch.randn(2, 4000, generator=generator)
    else:
        given["input_ids"] = ids()
        if "attention_mask" in known:
            mask = torch.ones(2, tokens, dtype=torch.int64)
            mask[1, -5:] = 0
            given["attention_mask"] = mask
        if type(config).__name__ == "CLIPConfig" or "pixel_values" in known and hasattr(model, "get_image_features") and hasattr(model, "logit_scale"):
            size = config.vision_config.image_size
            given["pixel_values"] = torch.randn(2, 3, size, size, generator=generator)
    if "decoder_input_ids" in known:
        given["decoder_input_ids"] = torch.randint(3, 95, (2, 11), generator=generator)
    return given


def numbers_of(output) -> list[torch.Tensor]:
    """The states that are compared."""
    kept = []
    for name in ("last_hidden_state", "logits", "image_embeds", "text_embeds", "encoder_last_hidden_state", "pooler_output"):
        value = getattr(output, name, None)
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            kept.append(value)
    if not kept:
        kept = [x for x in output.to_tuple() if isinstance(x, torch.Tensor) and x.is_floating_point()][:1]
    return kept


def build(model_type: str, implementation: str) -> torch.nn.Module:
    config = shrink(CONFIG_MAPPING[model_type])
    torch.manual_seed(SEED)
    model_class = MODEL_MAPPING[CONFIG_MAPPING[model_type]]
    model_class = model_class[0] if isinstance(model_class, tuple) else model_class
    with torch.device("meta"):
        size = sum(p.numel() for p in model_class._from_config(config, attn_implementation="eager").parameters())
    if size > MOST_PARAMETERS:
        raise NotImplementedError(f"its sizes have other names: {size / 1e6:.0f} million parameters")
    return model_class._from_config(config, attn_implementation=implementation).eval()


def difference(model_type: str) -> tuple[float, float]:
    """The largest difference between foveal and eager: of states at positions that are no padding, and of gradients."""
    results, calls = [], []
    for implementation in ("eager", "foveal"):
        model = build(model_type, implementation)
        if implementation == "foveal":
            hf._watchers.append(lambda *_: calls.append(1))
        given = inputs_of(model, model.config)
        output = numbers_of(model(**given))
        states = []
        for x in output:
            mask = given.get("attention_mask")
            if mask is not None and x.dim() == 3 and x.shape[:2] == mask.shape:
                x = x[mask.bool()]
            states.append(x)
        torch.manual_seed(1)
        loss = sum((x * torch.randn_like(x)).mean() for x in states)
        loss.backward()
        gradients = torch.cat([p.grad.reshape(-1) for p in model.parameters() if p.grad is not None])
        results.append((torch.cat([x.detach().reshape(-1) for x in states]), gradients))
    hf._watchers.clear()
    if not calls:
        raise NotImplementedError("calls no attention of the interface")
    (a, da), (b, db) = results
    assert a.numel() == b.numel() and torch.isfinite(a).all()
    # Where gradients are in the hundreds, as of tokens that begin as zeros before a normalisation, so is their rounding.
    return (a - b).abs().max().item(), ((da - db).abs().max() / da.abs().max().clamp(min=1.0)).item()


def interface_models() -> list[str]:
    """The model types whose code calls the attention interface, or whose models set its flag."""
    types = []
    for model_type in sorted(CONFIG_MAPPING.keys()):
        try:
            model_class = MODEL_MAPPING[CONFIG_MAPPING[model_type]]
            model_class = model_class[0] if isinstance(model_class, tuple) else model_class
            calls = "ALL_ATTENTION_FUNCTIONS" in inspect.getsource(sys.modules[model_class.__module__])
            if calls or getattr(model_class, "_supports_attention_backend", False):
                types.append(model_type)
        except (KeyError, ImportError, AttributeError, RuntimeError, ValueError, OSError):
            continue
    return types


def out_of_patience(*_):
    raise TimeoutError(f"takes more than {PATIENCE} s")


def main() -> None:
    hf.register()
    signal.signal(signal.SIGALRM, out_of_patience)
    torch.set_num_threads(2)
    rows, passed = [], []
    wanted = sys.argv[1:] or interface_models()
    for model_type in wanted:
        try:
            signal.alarm(PATIENCE)
            states, gradients = difference(model_type)
            fine = states <= 1e-4 and gradients <= 1e-4
            rows.append((model_type, "passes" if fine else "**differs**", f"{states:.1e}, {gradients:.1e}"))
            if fine:
                passed.append(model_type)
        except Exception as error:
            line = f"{type(error).__name__}: {error}".splitlines()[0][:110].replace("|", "/")
            rows.append((model_type, "not compared", line))
        signal.alarm(0)
        print(*rows[-1], flush=True)
    if not sys.argv[1:]:
        here = pathlib.Path(__file__).parent
        text = ["| architecture | foveal = eager | largest difference of states, of gradients; or why not |", "|---|---|---|"]
        text += [f"| {a} | {b} | {c} |" for a, b, c in rows]
        (here / "architectures.md").write_text("\n".join(text) + "\n")
        (here / "architectures.json").write_text(json.dumps(passed, indent=0) + "\n")
        print(f"{len(passed)} of {len(rows)} pass")


if __name__ == "__main__":
    main()
