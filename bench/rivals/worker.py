"""The line protocol by which compare.py drives a worker: one JSON object a line, each answered by one.

    {"load": work}             reads the inputs, computes the answer once and writes it     -> {"answers": {name: path}, "way", "library"}
    {"time": n, "warm": w}     repeats the loaded work w + n times                          -> {"ns": nanoseconds of one of the n}

Whatever goes wrong is answered with {"error": text}. The worker ends when its input does.

A work of the engine: {"work": "forward" | "call" | "backward" | "decode", "shape": [B, H, T, D], "kv_heads": heads of k and v, "keys": S,
"mask": "none" | "causal" | "keep" | "longformer" | "packed", "bias": "none" | "alibi" | "dense", "inputs": {name: path of raw little-endian f32; keep: bytes},
"answers": folder}. A packed one has "lengths", those of the sequences that lie end to end in T.
Those of models are listed in ../models.py.
"""

import json
import os
import sys
import time
from dataclasses import dataclass
from typing import Callable

import numpy as np

THREADS = int(os.environ.get("BENCH_THREADS", "2"))


@dataclass
class Way:
    """One way to do a work: `run` is what is timed, `answers` gives what `run` returned as arrays."""

    name: str
    run: Callable[[], object]
    answers: Callable[[object], dict[str, np.ndarray]]
    trial: Callable[[], object] | None = None  # a shorter run that tells which way is the fastest


class NotOffered(Exception):
    """The library has no call for this work."""


def array(work: dict, name: str, shape: list[int], dtype: str = "<f4") -> np.ndarray:
    return np.fromfile(work["inputs"][name], dtype=dtype).reshape(shape)


def nanoseconds(run: Callable[[], object], n: int, warm: int = 0) -> float:
    for _ in range(warm):
        run()
    start = time.perf_counter_ns()
    for _ in range(n):
        run()
    return (time.perf_counter_ns() - start) / n


def load(work: dict, ways: Callable[[dict], list[Way]]) -> tuple[Way, dict]:
    """The fastest way to do the work, and the reply: a rival gets the form of the call that suits it best."""
    choice = ways(work)
    if len(choice) > 1:
        choice.sort(key=lambda way: min(nanoseconds(way.trial or way.run, 1, warm) for warm in (1, 0, 0)))
    paths = {}
    for name, answer in choice[0].answers(choice[0].run()).items():
        paths[name] = os.path.join(work["answers"], f"{name}.f32")
        np.ascontiguousarray(answer, dtype="<f4").tofile(paths[name])
    return choice[0], {"answers": paths, "way": choice[0].name}


def serve(library: str, ways: Callable[[dict], list[Way]]) -> None:
    # Libraries print to stdout as they please; the protocol keeps a copy of it for itself.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    loaded = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "load" in request:
                loaded = None
                loaded, reply = load(request["load"], ways)
                reply["library"] = library
            elif "time" in request and loaded is not None:
                reply = {"ns": nanoseconds(loaded.run, request["time"], request.get("warm", 0))}
            else:
                raise ValueError(f"expected load, then time; got {line.strip()}")
        except Exception as error:  # whatever a library throws is for the coordinator to report
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=replies, flush=True)
