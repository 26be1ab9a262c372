"""Programs that are timed in turn. The machine changes from minute to minute: what is compared is measured in one round."""

import json
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

SLOT = 0.12e9  # nanoseconds that a program's turn takes, if one repetition does not take longer
LONG_ROUND = 3e9
ROUNDS, ROUNDS_IF_LONG = 15, 7
SLOW, ROUNDS_IF_SLOW = 8, 3  # who takes 8 times as long takes part in 3 rounds
# ONNX Runtime's threads spin for 50 ms after a call, PyTorch's for 5; the next program shall find the machine idle.
CALM = 0.1
# Then it is watched for this long: who else is busy now is likely to be so during the turn.
WATCH = 0.05
BUSY = 0.3


class Failed(Exception):
    """A worker said that it cannot, or said nothing more."""


class Worker:
    """A process that speaks the line protocol of rivals/worker.py."""

    def __init__(self, name: str, command: list[str], environment: dict[str, str]):
        self.name, self.command, self.environment = name, command, environment
        self.process = None

    def ask(self, request: dict) -> dict:
        if self.process is None or self.process.poll() is not None:
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(self.command, stdin=pipe, stdout=pipe, text=True, env=self.environment)
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise Failed(f"the worker ended with status {self.process.wait()}")
        reply = json.loads(line)
        if "error" in reply:
            raise Failed(reply["error"])
        return reply

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait()


class Program(Worker):
    """A program that is timed as a whole, from start to end. It takes a request's "arguments"; its answer is what it prints."""

    def ask(self, request: dict) -> dict:
        if load := request.get("load"):
            self.arguments = load["arguments"]
            path = Path(load["answers"]) / "printed"
            path.write_text(self.printed())
            return {"answers": {"printed": str(path)}}
        for _ in range(request["warm"]):
            self.printed()
        start = time.perf_counter_ns()
        for _ in range(request["time"]):
            self.printed()
        return {"ns": (time.perf_counter_ns() - start) / request["time"]}

    def printed(self) -> str:
        command = [*self.command, *self.arguments]
        done = subprocess.run(command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if done.returncode != 0:
            raise Failed(f"the program ended with status {done.returncode}")
        return done.stdout


@dataclass
class Turn:
    """A program with its work loaded, and the nanoseconds it took in each round."""

    worker: Worker
    loaded: dict
    repeats: int = 1
    slow: bool = False  # so much slower than the fastest that a few rounds tell
    times: list[float] = field(default_factory=list)

    def time(self) -> float:
        # A work so long that it runs once needs no warming up.
        return self.worker.ask({"time": self.repeats, "warm": int(self.repeats > 1)})["ns"]


def measure(turns: list[Turn], rounds: int | None) -> int:
    """Fills in `times`: in each round every program has its turn, and each round begins with another program.

    Returns how many turns began while something else was keeping the machine busy.
    """
    expected, single = 0.0, []
    for turn in turns:
        once = turn.time()
        if once < SLOT / 10:
            turn.repeats = max(1, round(SLOT / 10 / once))
            once = turn.time()
        turn.repeats = max(1, min(round(SLOT / once), 100_000))
        single.append(once)
    for turn, once in zip(turns, single, strict=True):
        turn.slow = once > SLOW * min(single)
        expected += 0 if turn.slow else once * turn.repeats
    count = rounds or (ROUNDS_IF_LONG if expected > LONG_ROUND else ROUNDS)
    disturbed = 0
    for i in range(count):
        detail(f"round {i + 1} of {count}")
        first = i % len(turns)
        for turn in turns[first:] + turns[:first]:
            if turn.slow and i >= ROUNDS_IF_SLOW:
                continue
            time.sleep(CALM)
            disturbed += busy_share() > BUSY
            turn.times.append(turn.time())
    return disturbed


def busy_share() -> float:
    """The share of the processors' time that anyone uses at the moment; 0 where the system does not tell."""

    def ticks() -> tuple[int, int]:
        fields = list(map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]))
        return sum(fields), fields[3] + fields[4]  # all, and idle or waiting for a disk

    try:
        total, idle = ticks()
        time.sleep(WATCH)
        total_after, idle_after = ticks()
    except (OSError, ValueError, IndexError):
        return 0.0
    return 1 - (idle_after - idle) / max(1, total_after - total)


def paired(ours: Turn, theirs: Turn, factor: float = 1.0) -> float:
    """The median over the rounds of theirs / ours."""
    # A slow rival took part in the first rounds only.
    return statistics.median(factor * b / a for a, b in zip(ours.times, theirs.times, strict=False))


def progress(text: str) -> None:
    print(text.ljust(100) if sys.stderr.isatty() else text, file=sys.stderr, flush=True)


def detail(text: str) -> None:
    """A line that the next one overwrites; nothing where there is no terminal."""
    if sys.stderr.isatty():
        print(f"  {text}".ljust(100), end="\r", file=sys.stderr, flush=True)
