"""What a model attended to: any weight of any head, computed when it is asked for."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from foveal import _foveal

__all__ = ["Trace"]

#: Tokens up to which a picture has labels, and a page that holds all of its layers is offered without asking.
_LABELLED = 96


class _Layer:
    """One layer of attention: arrays that are read where they lie, and the attention that read them."""

    def __init__(self, attention: _foveal.Attention, q: Any, k: Any, v: Any, lse: Any, output: Any = None):
        self.attention, self.q, self.k, self.v, self.lse, self.output = attention, q, k, v, lse, output

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(sequences, heads, queries, keys)"""
        return (*self.q.shape[:3], self.k.shape[2])


class Trace:
    """Layers of attention, each kept as queries, keys, values and the log-sum-exp of each row: O(n).

    ``kind`` is "encoder", "decoder" or "cross"; it may be left out where there is only one. Layers, heads and sequences count
    from 0. ``rows`` and ``cols`` are ranges (start, end).
    """

    def __init__(self, name: str = "model"):
        #: What the model is called.
        self.name = name
        #: What was read, where that is known.
        self.text = ""
        self._layers: dict[tuple[str, int], _Layer] = {}
        self._built: _foveal._Trace | None = None
        self._sides: dict[str, list[dict[str, Any]]] = {}
        self._ids: np.ndarray | None = None

    # What there is.

    @property
    def layers(self) -> list[tuple[str, int]]:
        """(kind, layer) of every layer that was kept."""
        if self._layers:
            return sorted(self._layers)
        return [] if self._built is None else [(kind, layer) for kind, layer, *_ in self._built.layers]

    @property
    def kinds(self) -> list[str]:
        """The kinds of attention there are."""
        return sorted({kind for kind, _ in self.layers})

    def shape(self, layer: int = 0, kind: str | None = None) -> tuple[int, int, int, int]:
        """(sequences, heads, queries, keys) of a layer."""
        kind = self._kind(kind)
        if self._layers:
            return self._layer(kind, layer).shape
        for name, number, heads, queries, keys in self._all().layers:
            if (name, number) == (kind, layer):
                return (1, heads, queries, keys)
        raise _foveal.Error(f"layer {layer} of {kind} was not kept; there are {self.layers}")

    @property
    def tokens(self) -> list[str]:
        """What the tokens of the first sequence are called, along the rows."""
        return self._side()[0]["labels"]

    # What was attended to.

    def weights(self, layer: int = 0, head: int = 0, *, sequence: int = 0, kind: str | None = None) -> np.ndarray:
        """All weights of a head: [queries, keys]. For short texts; otherwise see :meth:`tile` and :meth:`map`."""
        return self.tile(layer, head, sequence=sequence, kind=kind)

    def tile(
        self,
        layer: int = 0,
        head: int = 0,
        rows: tuple[int, int] | None = None,
        cols: tuple[int, int] | None = None,
        *,
        sequence: int = 0,
        kind: str | None = None,
    ) -> np.ndarray:
        """The weights of some queries on some keys. Nothing else is computed."""
        kind = self._kind(kind)
        if not self._layers:
            return self._all().tile(kind, layer, head, sequence, rows, cols)
        at = self._layer(kind, layer)
        return at.attention.tile(at.q, at.k, at.lse, head, sequence, rows, cols)

    def map(
        self,
        layer: int = 0,
        head: int = 0,
        rows: tuple[int, int] | None = None,
        cols: tuple[int, int] | None = None,
        *,
        size: tuple[int, int] = (256, 256),
        pool: str = "max",
        sequence: int = 0,
        kind: str | None = None,
    ) -> np.ndarray:
        """A picture of the weights, pooled by "max", "mean" or "sum" to at most ``size`` pixels."""
        kind = self._kind(kind)
        if not self._layers:
            return self._all().map(kind, layer, head, sequence, rows, cols, size, pool)
        at = self._layer(kind, layer)
        return at.attention.map(at.q, at.k, at.lse, head, sequence, rows, cols, size, pool)

    def top(
        self, layer: int = 0, head: int = 0, count: int = 5, *, sequence: int = 0, kind: str | None = None
    ) -> list[list[tuple[int, float]]]:
        """For every query the keys with the most weight: [(key, weight), …], the strongest first."""
        kind = self._kind(kind)
        return self._some([(kind, layer)]).top(kind, layer, head, sequence, count)

    def cell(
        self, layer: int, head: int, query: int, key: int, *, sequence: int = 0, kind: str | None = None
    ) -> dict[str, float]:
        """Every step from q·k to one weight: product, scale, score, max, exp, sum, weight."""
        kind = self._kind(kind)
        return self._some([(kind, layer)]).cell(kind, layer, head, sequence, query, key)

    def rollout(self, layer: int | None = None, *, sequence: int = 0, kind: str | None = None) -> np.ndarray:
        """Attention rollout (Abnar 2020) up to a layer, the last if none is named: [tokens, tokens]."""
        kind = self._kind(kind)
        layer = max(number for name, number in self.layers if name == kind) if layer is None else layer
        upto = [(kind, number) for name, number in self.layers if name == kind and number <= layer]
        return self._some(upto).rollout(kind, layer, sequence)

    def norms(
        self, layer: int = 0, head: int | None = None, *, sequence: int = 0, kind: str | None = None
    ) -> np.ndarray:
        """‖w·v·W_o‖ (Kobayashi 2020) of one head, or of all heads of a layer together: [queries, keys]."""
        kind = self._kind(kind)
        return self._some([(kind, layer)]).norms(kind, layer, head, sequence)

    def head_scores(
        self, *, sequence: int = 0, kind: str | None = None, period: int | None = None
    ) -> list[dict[str, Any]]:
        """What each head does: entropy, confidence, weight on the token before, on equal tokens, at sinks."""
        kind = self._kind(kind)
        ids = self._token_ids(sequence, self.shape(self._first(kind), kind)[2])
        return self._some([at for at in self.layers if at[0] == kind]).head_scores(kind, sequence, ids, period)

    def arrays(self, layer: int = 0, *, kind: str | None = None) -> dict[str, np.ndarray]:
        """q, k, v and lse of a layer."""
        kind = self._kind(kind)
        if not self._layers:
            return self._all().arrays(kind, layer)
        at = self._layer(kind, layer)
        return {"q": at.q, "k": at.k, "v": at.v, "lse": at.lse}

    # Pictures.

    def save(
        self,
        path: str | pathlib.Path,
        *,
        layer: int | None = None,
        head: int | None = None,
        sequence: int = 0,
        kind: str | None = None,
        language: str = "en",
        dark: bool = False,
    ) -> None:
        """Writes a file: ``.html`` is the page with all layers and heads; ``.png``, ``.svg``, ``.json`` and ``.csv`` show one head."""
        path = pathlib.Path(path)
        ending = path.suffix[1:].lower()
        if ending in ("html", "htm"):
            path.write_text(self.html(language=language), encoding="utf-8")
            return
        kind = self._kind(kind)
        layer = self._first(kind) if layer is None else layer
        head = 0 if head is None else head
        _, _, queries, keys = self.shape(layer, kind)
        note = f"{self.name} · {kind} · layer {layer}, head {head}"
        words = {"title": _shortened(self.text), "note": note, "language": language, "dark": dark}
        if max(queries, keys) <= _LABELLED or ending in ("json", "csv"):
            rows, cols = (side["labels"] for side in self._side(kind))
            matrix = self.weights(layer, head, sequence=sequence, kind=kind)
            picture = _foveal.picture(matrix, ending, list(rows), list(cols), **words)
        else:
            matrix = self.map(layer, head, size=(768, 768), sequence=sequence, kind=kind)
            picture = _foveal.picture(matrix, ending, size=(queries, keys), **words)
        path.write_bytes(picture)

    def html(self, *, language: str = "en") -> str:
        """The page with all layers and heads of the first sequence, as one file that fetches nothing."""
        axes, sites = self._page()
        return self._all().html(axes, sites, _shortened(self.text), self.name, language)

    def show(self, *, language: str = "en", height: int = 640) -> Any:
        """The page as a widget, whose tiles the kernel computes; without a live kernel the notebook shows the page as it was saved."""
        from foveal.notebook import show

        return show(self, language=language, height=height)

    def __repr__(self) -> str:
        if not self.layers:
            return f"<foveal.Trace of {self.name}: nothing was attended to yet>"
        sizes = "; ".join(f"{kind}: {sum(k == kind for k, _ in self.layers)} layers" for kind in self.kinds)
        return f"<foveal.Trace of {self.name}: {sizes}; shape {self.shape(self._first(self.kinds[0]), self.kinds[0])}>"

    # How it is kept.

    def _kind(self, kind: str | None) -> str:
        kinds = self.kinds
        if not kinds:
            raise _foveal.Error("nothing was attended to; run the model within the block of foveal.watch")
        if kind is None:
            if len(kinds) > 1:
                raise _foveal.Error(f"there are several kinds of attention; choose one of {kinds} as kind")
            return kinds[0]
        if kind not in kinds:
            raise _foveal.Error(f"there is no {kind!r} attention; there is {kinds}")
        return kind

    def _first(self, kind: str) -> int:
        return min(layer for name, layer in self.layers if name == kind)

    def _layer(self, kind: str, layer: int) -> _Layer:
        try:
            return self._layers[kind, layer]
        except KeyError:
            raise _foveal.Error(f"layer {layer} of {kind} was not kept; there are {self.layers}") from None

    def _some(self, sites: Iterable[tuple[str, int]]) -> _foveal._Trace:
        """These layers for the analyses, which want arrays of their own."""
        if self._built is not None:
            return self._built
        built = _foveal._Trace()
        for kind, number in sites:
            at = self._layer(kind, number)
            built.add(kind, number, at.attention, at.q, at.k, at.lse, at.v, at.output)
        return built

    def _all(self) -> _foveal._Trace:
        if self._built is not None:
            return self._built
        return self._some(self.layers)

    def _token_ids(self, sequence: int, count: int) -> list[int]:
        if self._ids is not None and self._ids.shape[-1] == count:
            return [int(token) for token in self._ids[min(sequence, len(self._ids) - 1)]]
        return list(range(count))

    def _side(self, kind: str | None = None) -> list[dict[str, Any]]:
        """The tokens of rows and columns."""
        kind = self.kinds[0] if kind is None else kind
        if kind not in self._sides:
            _, _, queries, keys = self.shape(self._first(kind), kind)
            self._sides[kind] = [_numbered(queries), _numbered(keys)]
        return self._sides[kind]

    def _page(self) -> tuple[list[dict[str, Any]], list[tuple[str, int, int]]]:
        axes: list[dict[str, Any]] = []
        sites = []
        for kind in self.kinds:
            places = []
            for side in self._side(kind):
                if side not in axes:
                    axes.append(side)
                places.append(axes.index(side))
            sites.append((kind, *places))
        return axes, sites


def _numbered(count: int) -> dict[str, Any]:
    return labelled([str(n) for n in range(count)])


def labelled(labels: Sequence[str], ids: Sequence[int] | None = None, special: Sequence[bool] | None = None) -> dict[str, Any]:
    """Tokens along one side."""
    count = len(labels)
    return {
        "labels": list(labels),
        "ids": list(range(count)) if ids is None else [int(n) for n in ids],
        "special": [False] * count if special is None else list(special),
        "words": list(range(count)),
    }


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 72 else line[:72] + "…"


def of_reading(name: str, reading: Any) -> Trace:
    """The trace of a model of ``foveal.load``."""
    trace = Trace(name)
    trace.text = reading.text
    trace._built = reading.trace()
    queries, keys = reading.sides()
    kinds = {kind for kind, *_ in trace._built.layers}
    for kind in kinds:
        own = {"encoder": [keys, keys], "decoder": [queries, queries]}.get(kind, [queries, keys])
        trace._sides[kind] = own if "cross" in kinds else [queries, keys]
    trace._ids = np.array([queries["ids"]])
    #: What may come next, and what was written.
    trace.predictions = reading.predictions  # type: ignore[attr-defined]
    trace.written = reading.written  # type: ignore[attr-defined]
    return trace


