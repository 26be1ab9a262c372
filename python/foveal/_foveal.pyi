"""Types of the extension module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

__version__: str

_Range = tuple[int, int]
_Pool = Literal["max", "mean", "sum"]
_Floats = NDArray[np.float32]
_Lse = NDArray[np.float64]

class Error(ValueError): ...

class Pattern:
    @staticmethod
    def longformer(window: int, dilation: int = 1, global_tokens: Sequence[int] = ()) -> Pattern: ...
    @staticmethod
    def big_bird(
        tokens: int, *, block: int = 64, window: int = 3, global_start: int = 1, global_end: int = 1, random: int = 3, seed: int = 0
    ) -> Pattern: ...
    @staticmethod
    def strided(stride: int) -> Pattern: ...
    @staticmethod
    def fixed(stride: int, summary: int) -> Pattern: ...
    @staticmethod
    def swin(grid: tuple[int, int], window: tuple[int, int], shift: tuple[int, int] = (0, 0)) -> Pattern: ...
    @staticmethod
    def documents(lengths: Sequence[int]) -> Pattern: ...
    @staticmethod
    def blocks(size: int, rows: Sequence[Sequence[int]]) -> Pattern: ...
    def visible(self, position: int, key: int) -> bool: ...
    def picture(self, tokens: int) -> str: ...
    def __or__(self, other: Pattern) -> Pattern: ...

class Bias:
    @staticmethod
    def t5(table: ArrayLike, bidirectional: bool = True, max_distance: int = 128) -> Bias: ...
    @staticmethod
    def shaw(table: ArrayLike) -> Bias: ...
    @staticmethod
    def swin(table: ArrayLike, window: tuple[int, int], grid: tuple[int, int]) -> Bias: ...
    def constant(self) -> Bias: ...

class Gradients:
    dq: NDArray[Any]
    dk: NDArray[Any]
    dv: NDArray[Any]
    dbias: _Floats | None
    dsinks: _Floats | None

class Attention:
    def __init__(
        self,
        *,
        scale: float | None = None,
        causal: bool = False,
        window: tuple[int | None, int | None] | int | None = None,
        align: Literal["last", "first"] | Sequence[int] | NDArray[Any] = "last",
        lengths: Sequence[int] | NDArray[Any] | None = None,
        keys: NDArray[np.bool_] | None = None,
        mask: NDArray[np.bool_] | None = None,
        pattern: Pattern | Sequence[Pattern] | None = None,
        alibi: int | ArrayLike | None = None,
        bias: Bias | ArrayLike | None = None,
        bias_gradient: bool = True,
        softcap: float | None = None,
        sinks: ArrayLike | None = None,
        dropout: float | None = None,
        seed: int = 0,
        packed: tuple[Sequence[int] | NDArray[Any], Sequence[int] | NDArray[Any]] | None = None,
        precision: Literal["float32", "float16", "bfloat16"] | None = None,
    ) -> None: ...
    def forward(
        self, q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], *, tokens_first: bool = False
    ) -> tuple[NDArray[Any], _Lse]: ...
    def backward(
        self,
        q: NDArray[Any],
        k: NDArray[Any],
        v: NDArray[Any],
        out: NDArray[Any],
        lse: _Lse,
        dout: NDArray[Any],
        dlse: _Floats | None = None,
    ) -> Gradients: ...
    def weights(self, q: NDArray[Any], k: NDArray[Any]) -> _Floats: ...
    def tile(
        self,
        q: NDArray[Any],
        k: NDArray[Any],
        lse: _Lse,
        head: int = 0,
        sequence: int = 0,
        rows: _Range | None = None,
        cols: _Range | None = None,
    ) -> _Floats: ...
    def map(
        self,
        q: NDArray[Any],
        k: NDArray[Any],
        lse: _Lse,
        head: int = 0,
        sequence: int = 0,
        rows: _Range | None = None,
        cols: _Range | None = None,
        size: tuple[int, int] = (256, 256),
        pool: _Pool = "max",
    ) -> _Floats: ...
    def decode(self, q: NDArray[Any], cache: KvCache) -> tuple[_Floats, _Lse]: ...

class KvCache:
    def __init__(
        self,
        batch: int,
        heads: int,
        dim: int,
        value_dim: int | None = None,
        *,
        capacity: int = 0,
        precision: Literal["float32", "float16", "bfloat16"] = "float32",
        pages: int | None = None,
        page: int = 16,
    ) -> None: ...
    def append(self, k: NDArray[Any], v: NDArray[Any], sequence: int | None = None) -> None: ...
    def truncate(self, length: int, sequence: int | None = None) -> None: ...
    def select(self, sequences: Sequence[int]) -> KvCache: ...
    @property
    def lengths(self) -> list[int]: ...
    @property
    def free_pages(self) -> int: ...
    @property
    def k(self) -> _Floats: ...
    @property
    def v(self) -> _Floats: ...
    def __len__(self) -> int: ...

class Rope:
    def __init__(
        self,
        dim: int,
        *,
        base: float = 10_000.0,
        layout: Literal["halves", "interleaved"] = "halves",
        linear: float | None = None,
        ntk: float | None = None,
    ) -> None: ...
    def rotate(self, x: NDArray[Any], start: int = 0) -> _Floats: ...
    def rotate_back(self, dx: NDArray[Any], start: int = 0) -> _Floats: ...
    @property
    def frequencies(self) -> list[float]: ...

class _Family:
    def forward(self, q: NDArray[Any], k: NDArray[Any], v: NDArray[Any]) -> tuple[_Floats, _Lse]: ...
    def backward(
        self, q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], out: NDArray[Any], lse: _Lse, dout: NDArray[Any]
    ) -> tuple[_Floats, _Floats, _Floats, _Floats | None]: ...
    def weights(self, q: NDArray[Any], k: NDArray[Any]) -> _Floats: ...
    def tile(
        self,
        q: NDArray[Any],
        k: NDArray[Any],
        lse: _Lse,
        head: int = 0,
        sequence: int = 0,
        rows: _Range | None = None,
        cols: _Range | None = None,
    ) -> _Floats: ...
    def map(
        self,
        q: NDArray[Any],
        k: NDArray[Any],
        lse: _Lse,
        head: int = 0,
        sequence: int = 0,
        size: tuple[int, int] = (256, 256),
        pool: _Pool = "max",
    ) -> _Floats: ...

class LinearAttention(_Family):
    def __init__(
        self, features: Literal["elu", "favor"] = "elu", *, dim: int | None = None, count: int = 256, seed: int = 0, **options: Any
    ) -> None: ...

class AdditiveAttention(_Family):
    def __init__(self, weight: ArrayLike, **options: Any) -> None: ...

class LuongAttention(_Family):
    def __init__(self, weight: ArrayLike | None = None, *, causal: bool = False) -> None: ...

class Generation(Iterator[str]):
    def __iter__(self) -> Generation: ...
    def __next__(self) -> str: ...

class Model:
    def __init__(self, name: str) -> None: ...
    @property
    def name(self) -> str: ...
    def encode(self, text: str) -> list[int]: ...
    def decode(self, tokens: Sequence[int]) -> str: ...
    def run(self, text: str) -> _Floats: ...
    def read(self, text: str, *, chat: bool = False) -> Any: ...
    def translate(self, text: str) -> str: ...
    def embed(self, texts: Sequence[str]) -> _Floats: ...
    def generate(
        self,
        prompt: str,
        most: int = 128,
        *,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
    ) -> Generation: ...

class _Trace:
    def __init__(self) -> None: ...
    def __getattr__(self, name: str) -> Any: ...

class _Explorer:
    def __init__(
        self, trace: _Trace, axes: list[dict[str, Any]], sites: list[tuple[str, int, int]], text: str, model: str, language: str = "en"
    ) -> None: ...
    def ask(self, request: str) -> list[tuple[str, list[bytes]]]: ...

def set_num_threads(threads: int) -> None: ...
def get_num_threads() -> int: ...
def alibi_slopes(heads: int) -> _Floats: ...
def positional_encoding(tokens: int, dim: int) -> _Floats: ...
def framed_page(language: Literal["en", "ko"] = "en") -> str: ...
def picture(
    matrix: ArrayLike,
    format: str,
    rows: list[str] | None = None,
    cols: list[str] | None = None,
    size: tuple[int, int] | None = None,
    title: str = "",
    note: str = "",
    language: Literal["en", "ko"] = "en",
    dark: bool = False,
) -> bytes: ...
