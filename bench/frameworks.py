"""Attention inside candle and burn: Foveal called through them, against the engine's own call and their own operations.

A training step is forward and backward of sum(out · dout) through the framework's automatic gradients.
"""

from pathlib import Path

from build import ROOT, bench, built
from engine import Engine, spec, text
from rounds import Worker
from work import Check, Work

SHAPE = [1, 12, 1024, 64]
NO_DEARER = 1 / 1.05  # what passing through a framework may cost


class Framework:
    """See `Suite`. One for each framework, since their programs are "ours" and the rival by turns."""

    bench = None

    def __init__(self, name: str, bars: dict[str, float | None]):
        self.name, self.bars = name, bars

    def works(self) -> list[Work]:
        listed = []
        for mask, label in (("none", "full"), ("causal", "causal")):
            own = spec("forward", SHAPE, mask)
            rivals = {self.name: self.bars[label]}
            plain = {"plain": own, "plain_name": "own forward", "plain_bar": NO_DEARER}
            listed.append(Work(f"through {self.name}: forward {text(SHAPE)} {label}", own, rivals, **plain))
        for mask, label in (("none", "full"), ("causal", "causal")):
            step = spec("backward", SHAPE, mask)
            listed.append(Work(f"through {self.name}: training step {text(SHAPE)} {label}", step, {self.name: self.bars["step"]}))
        return listed

    def workers(self, rivals: set[str], environment: dict[str, str]) -> dict[str, Worker]:
        # candle and gemm pick some of their vector code when they are compiled.
        native = ["--config", 'build.rustflags=["-C", "target-cpu=native"]']
        command = ["build", "--release", "--locked", "--package", "foveal-framework-bench", "--bin", self.name, *native]
        program = built(command, ROOT / "frameworks", self.name)
        return {
            "ours": Worker(f"foveal-{self.name}", [program, "foveal"], environment),
            "plain": Worker("foveal", [bench(*Engine.bench), "--worker"], environment),
            self.name: Worker(self.name, [program], environment),
        }

    def prepared(self, spec: dict, folder: Path) -> tuple[dict, Check]:
        return Engine().prepared(spec, folder)


def frameworks() -> list[Framework]:
    return [
        Framework("candle", {"full": 10.0, "causal": 20.0, "step": None}),
        Framework("burn", {"full": None, "causal": None, "step": None}),
    ]
