"""The engine's works: attention on arrays, against PyTorch, ONNX Runtime and candle."""

import json
import sys
import zlib
from pathlib import Path

import numpy as np
import torch

import oracle
from build import ROOT, bench, built
from rounds import Worker
from work import Check, Work


class Engine:
    """See `Suite`."""

    bench = ("foveal", "engine")

    def works(self) -> list[Work]:
        return works()

    def workers(self, rivals: set[str], environment: dict[str, str]) -> dict[str, Worker]:
        ours = [bench(*self.bench), "--worker"]
        workers = {key: Worker("foveal", ours, environment) for key in ("ours", "plain", "limit")}
        for key, name in (("torch", "PyTorch"), ("flex", "FlexAttention"), ("onnxruntime", "ONNX Runtime")):
            workers[key] = Worker(name, [sys.executable, str(ROOT / f"bench/rivals/{key}_worker.py")], environment)
        if "candle" in rivals:
            command = [built(["build", "--release"], ROOT / "bench/rivals/candle", "candle-rival")]
            workers["candle"] = Worker("candle", command, environment)
        return workers

    def prepared(self, spec: dict, folder: Path) -> tuple[dict, Check]:
        arrays = inputs(spec)
        request = {**spec, "inputs": {}}
        for name, array in arrays.items():
            request["inputs"][name] = f"{folder}/{name}"
            array.tofile(request["inputs"][name])
        if spec["mask"] == "blocks":
            request["inputs"]["blocks"] = f"{folder}/blocks"
            Path(request["inputs"]["blocks"]).write_text(json.dumps(big_bird(spec["keys"])))
        if spec["mask"] == "packed":
            request["inputs"]["lengths"] = f"{folder}/lengths"
            Path(request["inputs"]["lengths"]).write_text(json.dumps(spec["lengths"]))
        return request, lambda request, paths: oracle.check(request, arrays, paths)


def big_bird(tokens: int, size: int = 64) -> dict:
    """The paper's: three blocks around a block's own, the first and the last, three at random; those two see all."""
    blocks = tokens // size
    random = np.random.default_rng(1)
    rows = [list(range(blocks))]
    for row in range(1, blocks - 1):
        seen = {0, row - 1, row, row + 1, blocks - 1}
        others = [block for block in range(blocks) if block not in seen]
        rows.append(sorted(seen | set(random.choice(others, 3, replace=False).tolist())))
    return {"size": size, "rows": [*rows, list(range(blocks))]}


def spec(work: str, shape: list[int], mask: str = "none", bias: str = "none", keys: int | None = None, **others) -> dict:
    sizes = {"shape": shape, "kv_heads": shape[1], "keys": keys or shape[2]}
    return {"work": work, **sizes, "mask": mask, "bias": bias, "left": 0, **others}


def works() -> list[Work]:
    shapes = [[1, 12, 1024, 64], [1, 8, 4096, 64], [1, 8, 4096, 128]]
    shares = {(4096, 64, "none"): 0.75, (4096, 128, "none"): 0.82}
    listed = []
    for shape in shapes:
        for mask, label in (("none", "full"), ("causal", "causal")):
            share = shares.get((shape[2], shape[3], mask))
            rivals = {"torch": 1.25, "onnxruntime": 1.25, "candle": 1.25}
            listed.append(Work(f"forward {text(shape)} {label}", spec("forward", shape, mask), rivals, "fma_peak", share))
    for shape in shapes:
        for mask, label in (("none", "full"), ("causal", "causal")):
            listed.append(Work(f"backward {text(shape)} {label}", spec("backward", shape, mask), {"torch": 1.3}, "fma_peak"))
    one_head = [1, 1, 8192, 64]
    listed.append(Work(f"backward {text(one_head)} full", spec("backward", one_head), {"torch": 1.7}, "fma_peak"))

    base = shapes[0]
    plain = {mask: spec("forward", base, mask) for mask in ("none", "causal")}
    within_15 = 1 / 1.15
    listed += [
        Work(f"forward {text(base)} keep-mask", spec("forward", base, "keep"), {"torch": 1.25}, "fma_peak"),
        Work(
            f"forward {text(base)} ALiBi",
            spec("forward", base, "none", "alibi"),
            {"torch": 3.0},
            "fma_peak",
            plain=plain["none"],
            plain_name="own plain forward",
            plain_bar=within_15,
        ),
        Work(
            f"forward {text(base)} ALiBi causal",
            spec("forward", base, "causal", "alibi"),
            {"torch": 3.0},
            "fma_peak",
            plain=plain["causal"],
            plain_name="own causal forward",
            plain_bar=within_15,
        ),
        Work(
            f"forward {text(base)} ALiBi as a score function",
            spec("forward", base, "none", "alibi_function"),
            limit="fma_peak",
            plain=spec("forward", base, "none", "alibi"),
            plain_name="own ALiBi",
            plain_bar=1 / 1.5,
        ),
        Work(f"forward {text(base)} per-head bias", spec("forward", base, "none", "dense"), {"torch": 2.5}, "fma_peak"),
    ]
    long = [1, 12, 4096, 64]
    listed.append(
        Work(
            f"forward {text(long)} window(511, 0)",
            spec("forward", long, "window", left=511),
            limit="fma_peak",
            plain=spec("forward", long, "causal"),
            plain_name="own causal forward, per tile",
            plain_bar=within_15,
            per_tile=True,
        )
    )
    newest = [1, 12, 1, 64]
    decode = spec("decode", newest, "causal", keys=32768)
    listed.append(Work("decode 1×12×1×64 on 32768 keys", decode, {"torch": 1.5}, "read_bandwidth", 0.8))
    bf16 = {**decode, "cache": "bf16"}
    listed.append(
        Work(
            "decode 1×12×1×64 on 32768 keys in bf16",
            bf16,
            plain={**bf16, "cache": "f32"},
            plain_name="own decode in f32",
            plain_bar=1.7,
        )
    )
    grouped = spec("decode", [1, 64, 1, 128], "causal", keys=32768, kv_heads=8)
    listed.append(Work("decode 1×64×1×128 on 8 heads of 32768 keys", grouped, {"torch": 2.0}, "read_bandwidth", 0.75))
    listed += packed()
    listed.append(Work("small call 1×4×16×32", spec("call", [1, 4, 16, 32]), {"torch": 1.0}, most=3.0, unit="µs"))

    head = [1, 1, 16384, 64]
    forward = spec("forward", head)
    listed += [
        Work("map of 16384² to 1024² pixels", spec("map", head), plain=forward, plain_name="own forward", plain_bar=1 / 1.2),
        Work("tile of 512² out of 16384²", spec("tile", head), most=5.0),
        Work("memory of forward 1×1×65536×64", spec("call", [1, 1, 65536, 64]), most=32.0, unit="MiB"),
        Work("memory of backward 1×1×65536×64", spec("backward", [1, 1, 65536, 64]), most=64.0, unit="MiB"),
    ]
    return listed + family()


def packed() -> list[Work]:
    """Sequences of different lengths end to end. PyTorch pads them, or takes one after the other."""
    lengths = np.random.default_rng(0).integers(16, 512, 64, endpoint=True).tolist()
    shape = [1, 12, sum(lengths), 64]
    listed = []
    for rival, name, bar in (("padded", "padded", 2.9), ("each", "one by one", 1.1)):
        sequences = spec("forward", shape, "packed", lengths=lengths, pairs=sum(n * n for n in lengths), rival=rival)
        listed.append(Work(f"64 sequences of 16 to 512, PyTorch's {name}", sequences, {"torch": bar}, "fma_peak"))
    return listed


def family() -> list[Work]:
    """Attention that is not of every token to every other."""
    long = [1, 4, 32768, 64]
    causal = spec("forward", long, "causal")
    sparse = {**spec("forward", long, "longformer"), "window": 512}
    name = f"Longformer ±512 {text(long)}"
    listed = [
        Work(f"{name} by causal", sparse, plain=causal, plain_name="own causal forward", plain_bar=12.0),
        Work(f"{name} by tile", sparse, plain=causal, plain_name="own causal forward, per tile", plain_bar=0.75, per_tile=True),
        Work(f"{name} backward", {**sparse, "work": "backward"}, limit="fma_peak"),
    ]
    shorter = {**spec("forward", [1, 4, 16384, 64], "longformer"), "window": 512}
    listed.append(Work("Longformer ±512 1×4×16384×64", shorter, {"flex": 2.0}, "fma_peak"))
    for kind in ("Longformer ±512", "BigBird", "linear", "FAVOR+ of 256"):
        for tokens in (16384, 32768, 65536):
            half = doubling(kind, tokens // 2)
            listed.append(
                Work(
                    f"{kind}, {tokens} tokens",
                    doubling(kind, tokens),
                    plain=half,
                    plain_name=f"itself, {tokens // 2} tokens",
                    plain_bar=1 / 2.2,
                )
            )
    return listed


def doubling(kind: str, tokens: int) -> dict:
    shape = [1, 4, tokens, 64]
    match kind.split()[0]:
        case "Longformer":
            return {**spec("forward", shape, "longformer"), "window": 512}
        case "BigBird":
            pairs = sum(map(len, big_bird(tokens)["rows"])) * 64 * 64
            return {**spec("forward", shape, "blocks"), "pairs": pairs}
        case "linear":
            return spec("linear", shape)
        case "FAVOR+":
            return {**spec("favor", shape), "features": 256}
        case other:
            raise ValueError(other)


def inputs(work: dict) -> dict[str, np.ndarray]:
    batch, heads, queries, dim = work["shape"]
    kv_heads, keys = work["kv_heads"], work["keys"]
    random = np.random.default_rng(zlib.crc32(json.dumps(work).encode()))
    shapes = {"q": (batch, heads, queries, dim), "k": (batch, kv_heads, keys, dim), "v": (batch, kv_heads, keys, dim)}
    if work["work"] in ("backward", "training"):
        shapes["dout"] = shapes["q"]
    if work["bias"] == "dense":
        shapes["bias"] = (1, heads, queries, keys)
    arrays = {name: random.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}
    if work.get("cache") == "bf16":
        # Rounded to bf16 beforehand, so that who reads f32 has the same answer to give.
        rounded = {name: torch.from_numpy(arrays[name]).bfloat16().float().numpy() for name in ("k", "v")}
        arrays |= rounded
    if work["bias"] == "alibi":
        arrays["bias"] = oracle.alibi(heads, queries, keys)
    if work["mask"] == "keep":
        arrays["keep"] = (random.random((1, 1, queries, keys)) < 0.8).astype(np.uint8)
    return arrays


def text(shape: list[int]) -> str:
    return "×".join(map(str, shape))
