"""Measures the engine against its rivals in alternating rounds: `make compare`.

Every answer is checked against float64 before it is timed (oracle.py). A ratio is the median over the rounds of
theirs / ours, so above 1 the engine is faster. Prints a table and writes out/compare.json, one object a row.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

import oracle
from rounds import Failed, Turn, Worker, detail, measure, paired, progress

ROOT = Path(__file__).resolve().parent.parent
RIVALS = {"torch": "PyTorch", "onnxruntime": "ONNX Runtime", "candle": "candle"}


@dataclass
class Work:
    """What is measured, against whom, and what it must reach. A bar of `None` is measured and not judged."""

    name: str
    spec: dict
    rivals: dict[str, float | None] = field(default_factory=dict)  # least ratio against each
    limit: str | None = None  # "fma_peak" or "read_bandwidth"
    share: float | None = None  # least share of the limit
    plain: dict | None = None  # our own call that this one is held against
    plain_name: str = ""
    plain_bar: float | None = None  # least ratio against it
    per_tile: bool = False  # against `plain` by the time for one tile of 64 × 64 in which anything is seen
    most: float | None = None  # highest value, in `unit`
    unit: str = "ms"

    @property
    def nanoseconds(self) -> float:
        """Of its unit of time."""
        return {"µs": 1e3, "ms": 1e6}[self.unit]


@dataclass
class Row:
    work: str
    rival: str | None
    ours: float
    theirs: float | None
    ratio: float | None
    share: float | None
    unit: str
    bar: str | None
    met: bool | None
    rounds: int
    way: str | None = None


def spec(work: str, shape: list[int], mask: str = "none", bias: str = "none", keys: int | None = None, left: int = 0) -> dict:
    return {"work": work, "shape": shape, "keys": keys or shape[2], "mask": mask, "bias": bias, "left": left}


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
    listed.append(Work("small call 1×4×16×32", spec("call", [1, 4, 16, 32]), {"torch": 1.0}, most=3.0, unit="µs"))

    head = [1, 1, 16384, 64]
    forward = spec("forward", head)
    listed += [
        Work("map of 16384² to 1024² pixels", spec("map", head), plain=forward, plain_name="own forward", plain_bar=1 / 1.2),
        Work("tile of 512² out of 16384²", spec("tile", head), most=5.0),
        Work("memory of forward 1×1×65536×64", spec("call", [1, 1, 65536, 64]), most=32.0, unit="MiB"),
        Work("memory of backward 1×1×65536×64", spec("backward", [1, 1, 65536, 64]), most=64.0, unit="MiB"),
    ]
    return listed


def inputs(work: dict) -> dict[str, np.ndarray]:
    batch, heads, queries, dim = work["shape"]
    keys = work["keys"]
    random = np.random.default_rng(zlib.crc32(json.dumps(work).encode()))
    shapes = {"q": (batch, heads, queries, dim), "k": (batch, heads, keys, dim), "v": (batch, heads, keys, dim)}
    if work["work"] == "backward":
        shapes["dout"] = shapes["q"]
    if work["bias"] == "dense":
        shapes["bias"] = (1, heads, queries, keys)
    arrays = {name: random.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}
    if work["bias"] == "alibi":
        arrays["bias"] = oracle.alibi(heads, queries, keys)
    if work["mask"] == "keep":
        arrays["keep"] = (random.random((1, 1, queries, keys)) < 0.8).astype(np.uint8)
    return arrays


class Comparison:
    """The workers, and what they have shown so far."""

    def __init__(self, ours: list[str], rivals: dict[str, list[str]], threads: int, rounds: int | None):
        # Each library reads its own; none may use more threads than the others.
        names = ("BENCH_THREADS", "RAYON_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        environment = {**os.environ, **dict.fromkeys(names, str(threads))}
        self.ours, self.plain, self.limit = (Worker(name, ours, environment) for name in ("foveal", "foveal", "limit"))
        self.rivals = {key: Worker(RIVALS[key], command, environment) for key, command in rivals.items()}
        self.rounds = rounds
        self.rows: list[Row] = []
        self.remarks: list[str] = []
        self.broken = False

    def close(self) -> None:
        for worker in (self.ours, self.plain, self.limit, *self.rivals.values()):
            worker.close()

    def run(self, work: Work) -> None:
        progress(work.name)
        with tempfile.TemporaryDirectory(prefix="foveal-compare-") as folder:
            arrays = inputs(work.spec)
            request = {**work.spec, "inputs": {}}
            for name, array in arrays.items():
                request["inputs"][name] = f"{folder}/{name}"
                array.tofile(request["inputs"][name])
            try:
                ours = self.loaded(self.ours, request, arrays)
                if work.unit == "MiB":
                    mebibytes = ours.worker.ask({"memory": 1})["bytes"] / 2**20
                    self.add(work, None, mebibytes, most=work.most, rounds=1)
                    return
                plain = self.loaded(self.plain, {**request, **work.plain}, arrays) if work.plain else None
                limit = Turn(self.limit, self.limit.ask({"load": {**work.spec, "work": work.limit}})) if work.limit else None
            except (Failed, oracle.Wrong) as error:
                self.remark(f"{work.name}: foveal: {error}")
                self.broken = True
                return
            turns, absent = {}, {}
            for key in [key for key in work.rivals if key in self.rivals]:
                try:
                    turns[key] = self.loaded(self.rivals[key], request, arrays)
                except (Failed, oracle.Wrong) as error:
                    absent[self.rivals[key].name] = f"not timed: {error}"
                    self.remark(f"{work.name}: {self.rivals[key].name} is not timed: {error}")
        everyone = [ours, *turns.values(), *(turn for turn in (plain, limit) if turn)]
        disturbed = measure(everyone, self.rounds)
        total = sum(len(turn.times) for turn in everyone)
        if disturbed > total // 10:
            self.remark(f"{work.name}: the machine was busy with something else in {disturbed} of {total} turns")
        self.conclude(work, ours, turns, plain, limit)
        for name, reason in absent.items():
            self.add(work, name, statistics.median(ours.times) / work.nanoseconds, rounds=len(ours.times), way=reason)

    def loaded(self, worker: Worker, request: dict, arrays: dict[str, np.ndarray]) -> Turn:
        """The work loaded and its answer checked."""
        detail(f"{worker.name}: loading")
        with tempfile.TemporaryDirectory(prefix="foveal-answers-") as folder:
            reply = worker.ask({"load": {**request, "answers": folder}})
            detail(f"{worker.name}: checking")
            oracle.check(request, arrays, reply["answers"])
        return Turn(worker, reply)

    def conclude(self, work: Work, ours: Turn, rivals: dict[str, Turn], plain: Turn | None, limit: Turn | None) -> None:
        unit = work.nanoseconds
        time = statistics.median(ours.times) / unit
        share = factor = None
        if limit:
            # The time that the limit allows for this work is the limit's own time by the ratio of what there is to do.
            amount = "flops" if work.limit == "fma_peak" else "bytes"
            factor = ours.loaded[amount] / limit.loaded[amount]
            share = paired(ours, limit, factor)
        rounds = len(ours.times)

        def median(turn: Turn) -> float:
            return statistics.median(turn.times) / unit

        for key, turn in rivals.items():
            name = turn.loaded.get("library", turn.worker.name)
            ratio, way = paired(ours, turn), turn.loaded.get("way")
            self.add(work, name, time, median(turn), ratio, share, work.rivals[key], rounds=rounds, way=way)
        if plain:
            scale = ours.loaded["tiles"] / plain.loaded["tiles"] if work.per_tile else 1.0
            ratio = paired(ours, plain, scale)
            self.add(work, work.plain_name, time, median(plain) * scale, ratio, share, work.plain_bar, rounds=rounds)
        if limit:
            name = "FMA peak" if work.limit == "fma_peak" else "read bandwidth"
            self.add(work, name, time, median(limit) * factor, share, share, work.share, rounds=rounds)
        if work.most is not None:
            self.add(work, None, time, most=work.most, rounds=rounds)

    def add(self, work, rival, ours, theirs=None, ratio=None, share=None, least=None, most=None, rounds=0, way=None) -> None:
        bar = met = None
        if least is not None:
            bar, met = f"≥ {least:.2f}", ratio >= least
        if most is not None:
            bar, met = f"≤ {most:g} {work.unit}", ours <= most
        self.rows.append(Row(work.name, rival, ours, theirs, ratio, share, work.unit, bar, met, rounds, way))

    def remark(self, text: str) -> None:
        progress(text)
        self.remarks.append(text)


def table(rows: list[Row]) -> str:
    def number(x: float | None, digits: int) -> str:
        return "—" if x is None else f"{x:.{digits}f}"

    head = ["work", "rival", "ours", "theirs", "", "ratio", "share", "bar", ""]
    lines = [head]
    for row in rows:
        share = "—" if row.share is None else f"{100 * row.share:.0f} %"
        verdict = {True: "met", False: "missed", None: ""}[row.met]
        times = [number(row.ours, 2), number(row.theirs, 2), row.unit]
        lines.append([row.work, row.rival or "—", *times, number(row.ratio, 2), share, row.bar or "", verdict])
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    right = {2, 3, 5, 6}
    return "\n".join(
        "  ".join(cell.rjust(w) if i in right else cell.ljust(w) for i, (cell, w) in enumerate(zip(line, widths))).rstrip()
        for line in lines
    )


def write(rows: list[Row], path: Path) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".json.part")
    part.write_text(json.dumps([asdict(row) for row in rows], indent=1, ensure_ascii=False) + "\n")
    part.replace(path)


def built(command: list[str], folder: Path, name: str) -> str:
    """Builds a Rust program, and says where it is."""
    # candle picks its vector code when it is compiled, by the flags in its .cargo/config.toml, which RUSTFLAGS would displace.
    environment = {key: value for key, value in os.environ.items() if key != "RUSTFLAGS"}
    command = [os.environ.get("CARGO", "cargo"), *command, "--message-format=json-render-diagnostics"]
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"could not build {name}: see above")
    messages = map(json.loads, done.stdout.splitlines())
    found = [m["executable"] for m in messages if m.get("executable") and m["target"]["name"] == name]
    return found[-1]


def text(shape: list[int]) -> str:
    return "×".join(map(str, shape))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="SUBSTRING", help="the works whose names contain this")
    parser.add_argument("--rivals", default=",".join(RIVALS), help="the rivals to run (default: %(default)s)")
    parser.add_argument("--rounds", type=int, help="default: 15 rounds, or 7 where a round takes longer than 3 s")
    parser.add_argument("--threads", type=int, default=2, help="of every program (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "compare.json")
    options = parser.parse_args()

    chosen = [work for work in works() if options.only in work.name]
    if not chosen:
        parser.error(f"no work has {options.only!r} in its name:\n" + "\n".join(work.name for work in works()))
    wanted = [key for key in options.rivals.split(",") if key]
    if unknown := set(wanted) - RIVALS.keys():
        parser.error(f"unknown rivals: {', '.join(sorted(unknown))}")

    ours = [built(["bench", "-p", "foveal", "--bench", "engine", "--no-run"], ROOT, "engine"), "--worker"]
    rivals = {}
    for key in wanted:
        if key == "candle":
            if any("candle" in work.rivals for work in chosen):
                rivals[key] = [built(["build", "--release"], ROOT / "bench/rivals/candle", "candle-rival")]
        else:
            rivals[key] = [sys.executable, str(ROOT / f"bench/rivals/{key}_worker.py")]

    comparison = Comparison(ours, rivals, options.threads, options.rounds)
    try:
        for work in chosen:
            comparison.run(work)
    finally:
        comparison.close()
    print(table(comparison.rows))
    judged = [row.met for row in comparison.rows if row.met is not None]
    print(f"\n{options.threads} threads, f32, medians of paired rounds; {sum(judged)} of {len(judged)} bars met")
    for remark in comparison.remarks:
        print(remark)
    write(comparison.rows, options.out)
    if comparison.broken:
        sys.exit("the engine failed a work: see above")


if __name__ == "__main__":
    main()
