"""Measures Foveal against its rivals in alternating rounds: `make compare`.

The engine against attention of others (engine.py), models and training against transformers and PyTorch (models.py), calls
through candle and burn (frameworks.py). Every answer is checked against float64 before it is timed. A ratio is the median over the rounds of theirs / ours, so above 1
Foveal is faster. Prints a table and writes out/compare.json, one object a row.

With --against REVISION the rival is Foveal itself as it was then: no work may have become slower.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from build import ROOT, bench, checked_out
from engine import Engine
from frameworks import frameworks
from models import FirstToken, Models
from python import Python
from rounds import Failed, Turn, Worker, detail, measure, paired, progress
from work import Check, Suite, Work, Wrong

RIVALS = ["torch", "flex", "onnxruntime", "candle", "burn", "transformers"]
NO_SLOWER = 0.97  # what is within the noise of a paired measurement


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


class Comparison:
    """The workers of a suite, and what they have shown so far."""

    def __init__(self, suite: Suite, workers: dict[str, Worker], rounds: int | None):
        self.suite, self.workers, self.rounds = suite, workers, rounds
        self.rows: list[Row] = []
        self.remarks: list[str] = []
        self.broken = False

    def close(self) -> None:
        for worker in self.workers.values():
            worker.close()

    def run(self, work: Work, rivals: list[str]) -> None:
        progress(work.name)
        with tempfile.TemporaryDirectory(prefix="foveal-compare-") as folder:
            try:
                request, check = self.suite.prepared(work.spec, Path(folder))
                ours = self.loaded("ours", request, check)
                if work.unit == "MiB":
                    mebibytes = ours.worker.ask({"memory": 1})["bytes"] / 2**20
                    self.add(work, None, mebibytes, most=work.most, rounds=1)
                    return
                plain = self.plain(work, request, check, Path(folder) / "plain") if work.plain else None
                limit = self.limit(work) if work.limit else None
            except (Failed, Wrong) as error:
                self.remark(f"{work.name}: foveal: {error}")
                self.broken = True
                return
            turns, absent = {}, {}
            for key in [key for key in work.rivals if key in rivals]:
                try:
                    turns[key] = self.loaded(key, request, check)
                except (Failed, Wrong) as error:
                    absent[self.workers[key].name] = f"not timed: {error}"
                    self.remark(f"{work.name}: {self.workers[key].name} is not timed: {error}")
        everyone = [ours, *turns.values(), *(turn for turn in (plain, limit) if turn)]
        disturbed = measure(everyone, self.rounds)
        total = sum(len(turn.times) for turn in everyone)
        if disturbed > total // 10:
            self.remark(f"{work.name}: the machine was busy with something else in {disturbed} of {total} turns")
        self.conclude(work, ours, turns, plain, limit)
        for name, reason in absent.items():
            self.add(work, name, statistics.median(ours.times) / work.nanoseconds, rounds=len(ours.times), way=reason)

    def loaded(self, key: str, request: dict, check: Check) -> Turn:
        """The work loaded and its answer checked."""
        worker = self.workers[key]
        detail(f"{worker.name}: loading")
        with tempfile.TemporaryDirectory(prefix="foveal-answers-") as folder:
            reply = worker.ask({"load": {**request, "answers": folder}})
            detail(f"{worker.name}: checking")
            check(request, reply["answers"])
        return Turn(worker, reply)

    def plain(self, work: Work, request: dict, check: Check, folder: Path) -> Turn:
        """Our own call that a work is held against, on the same inputs unless they are of another size."""
        if work.plain.get("shape") == request.get("shape"):
            return self.loaded("plain", {**request, **work.plain}, check)
        folder.mkdir()
        return self.loaded("plain", *self.suite.prepared(work.plain, folder))

    def limit(self, work: Work) -> Turn:
        worker = self.workers["limit"]
        return Turn(worker, worker.ask({"load": {**work.spec, "work": work.limit}}))

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


def against_before(work: Work) -> Work:
    """The same work with nobody but our own program of an earlier revision to beat."""
    return replace(work, rivals={"before": NO_SLOWER}, limit=None, share=None, plain=None, most=None)


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="SUBSTRING", help="the works whose names contain this")
    parser.add_argument("--rivals", default=",".join(RIVALS), help="the rivals to run (default: %(default)s)")
    parser.add_argument("--rounds", type=int, help="default: 15 rounds, or 7 where a round takes longer than 3 s")
    parser.add_argument("--against", metavar="REVISION", help="an earlier revision of Foveal is the only rival")
    parser.add_argument("--threads", type=int, default=2, help="of every program (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "compare.json")
    options = parser.parse_args()

    suites = [Engine(), Models(), FirstToken(), *frameworks(), Python()]
    everything = [(suite, work) for suite in suites for work in suite.works()]
    before = checked_out(options.against) if options.against else None
    if before:
        everything = [(suite, work) for suite, work in everything if suite.bench]
        everything = [(suite, against_before(work)) for suite, work in everything if work.unit != "MiB"]
    chosen = [(suite, work) for suite, work in everything if options.only in work.name]
    if not chosen:
        parser.error(f"no work has {options.only!r} in its name:\n" + "\n".join(work.name for _, work in everything))
    rivals = [key for key in options.rivals.split(",") if key]
    if unknown := set(rivals) - set(RIVALS):
        parser.error(f"unknown rivals: {', '.join(sorted(unknown))}")
    if before:
        rivals = ["before"]
    # Each library reads its own; none may use more threads than the others.
    names = ("BENCH_THREADS", "RAYON_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, str(options.threads))}

    rows, remarks, broken = [], [], False
    for suite in suites:
        works = [work for of, work in chosen if of is suite]
        if not works:
            continue
        needed = {key for work in works for key in work.rivals} & set(rivals)
        workers = suite.workers(needed, environment)
        if before:
            ours = workers["ours"]
            command = [bench(*suite.bench, before), *ours.command[1:]]
            workers["before"] = type(ours)(f"foveal at {options.against}", command, environment)
        comparison = Comparison(suite, workers, options.rounds)
        try:
            for work in works:
                comparison.run(work, rivals)
        finally:
            comparison.close()
        rows, remarks = rows + comparison.rows, remarks + comparison.remarks
        broken |= comparison.broken
    print(table(rows))
    judged = [row.met for row in rows if row.met is not None]
    print(f"\n{options.threads} threads, f32, medians of paired rounds; {sum(judged)} of {len(judged)} bars met")
    for remark in remarks:
        print(remark)
    write(rows, options.out)
    if broken:
        sys.exit("Foveal failed a work: see above")


if __name__ == "__main__":
    main()
