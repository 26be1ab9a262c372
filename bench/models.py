"""The works of models and training, against transformers and PyTorch on the same weights.

    {"work": "prefill", "model": folder, "tokens": […], "capture": false}     logits of the token after these
    {"work": "generate", "model": folder, "tokens": […], "most": n}           the n likeliest tokens, one after the other, in f32
                                                                              however the checkpoint stores its numbers
    {"work": "embed", "model": folder, "sentences": [[…], …]}                 a vector of length 1 for each
    {"work": "train_gpt2", "model": folder, "inputs": rows, "targets": rows}  the losses of the first steps
    {"work": "train_transformer", …, "source": rows}                          the same with a sequence to read

Answers are checked against the same models in float64.
"""

import os
import random
import re
import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import torch

from build import ROOT, bench
from rounds import Failed, Program, Worker
from work import Check, Work, Wrong

sys.path.append(str(ROOT / "bench/rivals"))

TOLERANCE = 1e-4
LOSS_TOLERANCE = 1e-3
GREEDY = 1e-3  # a token counts as the likeliest if none scores higher by more than this

TRANSLATOR = {
    "model_type": "transformer",
    "source_vocab_size": 600,
    "target_vocab_size": 600,
    "max_position_embeddings": 64,
    "d_model": 128,
    "num_heads": 4,
    "ffn_dim": 512,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "activation_function": "relu",
    "norm_order": "first",
    "layer_norm_eps": 1e-5,
    "tie_word_embeddings": True,
}


def gpt(layers: int, heads: int, width: int, context: int, vocabulary: int) -> dict:
    sizes = {"n_layer": layers, "n_head": heads, "n_embd": width, "n_positions": context, "vocab_size": vocabulary}
    return {"model_type": "gpt2", "activation_function": "gelu_new", "tie_word_embeddings": True, **sizes}


GPT2 = gpt(12, 12, 768, 1024, 50257)
SMALL = gpt(4, 4, 128, 64, 65)
MEDIUM = gpt(6, 6, 384, 256, 65)


class Models:
    """See `Suite`. A spec says which model and which sizes; the request has the checkpoint and the tokens."""

    bench = ("foveal-models", "models")

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="foveal-models-")

    def works(self) -> list[Work]:
        prefill = {"work": "prefill", "config": GPT2, "length": 1024, "capture": False}
        generate = {"work": "generate", "config": GPT2, "length": 8, "most": 128}
        train = lambda config, length, batch, kind: {"work": f"train_{kind}", "config": config, "length": length, "batch": batch}
        return [
            Work("GPT-2 124M, prefill of 1024 tokens", prefill, {"transformers": 1.2}),
            Work("GPT-2 124M, decode of 128 tokens", generate, {"transformers": 1.5}),
            Work("GPT-2 124M stored as bf16, decode of 128 tokens", {**generate, "stored": "bfloat16"}, {"transformers": 1.5}),
            Work("MiniLM, 32 sentences", {"work": "embed", "batch": 32}, {"transformers": 1.5}),
            Work(
                "GPT-2 124M, prefill with capture of all layers",
                {**prefill, "capture": True},
                plain={"capture": False},
                plain_name="own prefill",
                plain_bar=1 / 1.1,
            ),
            Work("training step, GPT 4 layers × 128, 12 × 64 tokens", train(SMALL, 64, 12, "gpt2"), {"torch": 1.5}),
            Work("training step, GPT 6 layers × 384, 4 × 256 tokens", train(MEDIUM, 256, 4, "gpt2"), {"torch": 1.15}),
            Work("training step, translator 2 + 2 × 128, 64 × 16 tokens", train(TRANSLATOR, 16, 64, "transformer"), {"torch": 1.5}),
        ]

    def workers(self, rivals: set[str], environment: dict[str, str]) -> dict[str, Worker]:
        ours = [bench(*self.bench), "--worker"]
        workers = {key: Worker("foveal", ours, environment) for key in ("ours", "plain")}
        for key, name, file in (("transformers", "transformers", "transformers"), ("torch", "PyTorch", "training")):
            workers[key] = Worker(name, [sys.executable, str(ROOT / f"bench/rivals/{file}_worker.py")], environment)
        return workers

    def prepared(self, spec: dict, folder: Path) -> tuple[dict, Check]:
        draw = random.Random(1)
        match spec["work"]:
            case "embed":
                request = {**spec, "model": str(test_data("minilm")), "sentences": sentences(spec["batch"])}
                return request, check_vectors(request)
            case "prefill" | "generate":
                tokens = [draw.randrange(spec["config"]["vocab_size"]) for _ in range(spec["length"])]
                stored = spec.get("stored", "float32")
                request = {**spec, "model": self.checkpoint(f"gpt2-124m-{stored}", spec["config"], stored), "tokens": tokens}
                return request, check_logits(request) if spec["work"] == "prefill" else check_greedy(request)
            case _:
                config = spec["config"]
                request = {**spec, "model": self.checkpoint(f"trained-{config.get('n_layer')}", config)}
                for name in ("source", "inputs", "targets") if "d_model" in config else ("inputs", "targets"):
                    vocabulary = config.get("vocab_size") or config["target_vocab_size"]
                    rows = [[draw.randrange(vocabulary) for _ in range(spec["length"])] for _ in range(spec["batch"])]
                    request[name] = rows
                return request, check_losses(request)

    def checkpoint(self, name: str, config: dict, stored: str = "float32") -> str:
        """A model that has learned nothing, the same in every run, with its numbers of this type."""
        from plain_models import plain_model

        folder = Path(self.folder.name) / name
        if not folder.exists():
            folder.mkdir()
            torch.manual_seed(1)
            plain_model(config).to(getattr(torch, stored)).save(folder)
        return str(folder)


class FirstToken:
    """See `Suite`. Whole programs, from start to the first token of a real checkpoint."""

    bench = ("foveal-models", "models")

    def works(self) -> list[Work]:
        return [Work("SmolLM2 135M, from start to first token", {}, {"transformers": 2.0})]

    def workers(self, rivals: set[str], environment: dict[str, str]) -> dict[str, Worker]:
        theirs = [sys.executable, str(ROOT / "bench/rivals/first_token.py")]
        return {
            "ours": Program("foveal", [bench(*self.bench), "--first-token"], environment),
            "transformers": Program("transformers", theirs, environment),
        }

    def prepared(self, spec: dict, folder: Path) -> tuple[dict, Check]:
        file = test_data("smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
        return {"arguments": [str(file), "The capital of France is"]}, check_printed


def test_data(name: str) -> Path:
    """What scripts/fetch_test_data.py has fetched."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = Path(os.environ.get("FOVEAL_TEST_CACHE") or caches / "foveal-test") / name
    if not path.exists():
        raise Failed(f"{path} is not there: run make data")
    return path


def sentences(count: int) -> list[list[int]]:
    """Sentences of a novel as MiniLM's tokens, of 4 to 64 of them."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(test_data("minilm/tokenizer.json")))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    text = " ".join(test_data("books/melville-moby_dick.txt").read_text(encoding="utf-8", errors="replace").split())
    found = [encoding.ids for encoding in tokenizer.encode_batch(re.split(r"(?<=[.!?]) ", text)[1000:2000])]
    return [ids for ids in found if 4 <= len(ids) <= 64][:count]


@cache
def double(folder: str):
    """transformers' model in float64."""
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64).eval()


def check_logits(request: dict) -> Check:
    with torch.inference_mode():
        expected = double(request["model"])(torch.tensor([request["tokens"]]), logits_to_keep=1).logits[0, -1]
    return lambda _, paths: near("logits", answer(paths, "logits", expected.shape), expected.numpy())


def check_greedy(request: dict) -> Check:
    def check(_: dict, paths: dict[str, str]) -> None:
        written = answer(paths, "tokens", [request["most"]]).astype(int).tolist()
        with torch.inference_mode():
            logits = double(request["model"])(torch.tensor([request["tokens"] + written])).logits[0]
        for i, token in enumerate(written):
            before = logits[len(request["tokens"]) - 1 + i]
            if before[token] < before.max() - GREEDY:
                raise Wrong(f"token {i} is {token}, not the likeliest")

    return check


def check_vectors(request: dict) -> Check:
    from transformers import AutoModel

    model = AutoModel.from_pretrained(request["model"], dtype=torch.float64).eval()
    with torch.inference_mode():
        sums = [model(torch.tensor([ids])).last_hidden_state[0].sum(0) for ids in request["sentences"]]
    expected = torch.nn.functional.normalize(torch.stack(sums), dim=1).numpy()
    return lambda _, paths: near("vectors", answer(paths, "vectors", expected.shape), expected)


def check_losses(request: dict) -> Check:
    from training import Training

    expected = Training(request, torch.float64).losses().numpy()
    return lambda _, paths: near("losses", answer(paths, "losses", expected.shape), expected, LOSS_TOLERANCE)


def check_printed(_: dict, paths: dict[str, str]) -> None:
    printed = Path(paths["printed"]).read_text().strip()
    if printed != "Paris":
        raise Wrong(f"printed {printed!r}, not Paris")


def answer(paths: dict[str, str], name: str, shape) -> np.ndarray:
    values = np.fromfile(paths[name], dtype="<f4")
    if values.size != np.prod(shape):
        raise Wrong(f"{name} has {values.size} numbers, not {np.prod(shape)}")
    return values.reshape(shape).astype(np.float64)


def near(name: str, got: np.ndarray, expected: np.ndarray, tolerance: float = TOLERANCE) -> None:
    worst = np.max(np.abs(got - expected) / (1 + np.abs(expected)))
    if not worst <= tolerance:
        raise Wrong(f"{name} are off by up to {worst:.2g}")
