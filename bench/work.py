"""What is measured: works, and the suites that they come from."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from rounds import Worker


class Wrong(Exception):
    """An answer that is not the answer."""


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


# Raises `Wrong` unless the files, by name, hold the answers to the request.
Check = Callable[[dict, dict[str, str]], None]


class Suite(Protocol):
    """Works of one kind, and the programs that do them."""

    bench: tuple[str, str] | None  # our own program: its package and its name; None if an earlier one is no rival

    def works(self) -> list[Work]: ...

    def workers(self, rivals: set[str], environment: dict[str, str]) -> dict[str, Worker]:
        """By name: "ours", a second one of it for `plain`, "limit" where works have one, and these of the rivals."""

    def prepared(self, spec: dict, folder: Path) -> tuple[dict, Check]:
        """The request of a work, with its inputs in this folder, and what checks the answers to it."""
