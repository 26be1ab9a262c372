"""The engine from Python: calls of `foveal.torch` against PyTorch's own, both measured from Python."""

import sys

from build import ROOT
from engine import Engine, spec, text
from rounds import Worker
from work import Work

SHAPES = [[1, 12, 1024, 64], [1, 8, 4096, 64]]
# A call that is over before a thread has woken may take half as long again as PyTorch's.
SMALL = 1 / 1.5


class Python(Engine):
    """See `Suite`. The package must be installed beside PyTorch: `make python`, then the wheel in out/wheels."""

    bench = None  # no program of ours that an earlier revision has, too

    def works(self) -> list[Work]:
        listed = []
        for work, full, causal in (("forward", 1.05, 1.2), ("training", 1.05, 1.25)):
            for shape in SHAPES:
                for mask, label, bar in (("none", "full", full), ("causal", "causal", causal)):
                    listed.append(Work(f"python {work} {text(shape)} {label}", spec(work, shape, mask), {"torch": bar}))
        listed.append(Work("python small call 1×4×16×32", spec("call", [1, 4, 16, 32]), {"torch": SMALL}, unit="µs"))
        return listed

    def workers(self, rivals: set[str], environment: dict[str, str]) -> dict[str, Worker]:
        command = lambda name: [sys.executable, str(ROOT / f"bench/rivals/{name}_worker.py")]  # noqa: E731
        return {
            "ours": Worker("foveal in Python", command("foveal"), environment),
            "torch": Worker("PyTorch", command("torch"), environment),
        }
