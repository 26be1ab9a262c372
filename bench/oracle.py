"""What attention is, in float64 and by its definition: the answers that every program must give before it is timed.

    s = scale · q kᵀ + bias, −∞ where hidden        w = softmax(s)          out = w v
    dv = wᵀ dout        dw = dout vᵀ        ds = w ∘ (dw − rowsum(dw ∘ w))        dq = scale · ds k        dk = scale · dsᵀ q

Large works are checked on a sample: one head, and of very long ones some of the rows.
"""

import json
import math
from dataclasses import dataclass

import numpy as np
import torch

from work import Wrong

TOLERANCE = 1e-4
BLOCK = 512  # query rows at a time: n × n is never stored here either
SAMPLED_ROWS = 256
PIXELS, TILE = 1024, 512  # as in crates/foveal/benches/engine/works.rs


def alibi_slopes(heads: int) -> np.ndarray:
    """Press et al.: 2^(−8/n), 2^(−16/n), …; for other counts than powers of two filled up from the next power's."""

    def sequence(n: int) -> list[float]:
        return [2.0 ** (-8.0 * (i + 1) / n) for i in range(n)]

    lower = 2 ** int(math.log2(heads))
    return np.array((sequence(lower) + sequence(2 * lower)[::2])[:heads], dtype=np.float32)


def alibi(heads: int, queries: int, keys: int) -> np.ndarray:
    """[1, H, T, S]: −slope · |distance|."""
    distance = np.abs(np.arange(queries)[:, None] + (keys - queries) - np.arange(keys)[None, :]).astype(np.float32)
    return (-alibi_slopes(heads)[:, None, None] * distance)[None]


def check(work: dict, arrays: dict[str, np.ndarray], paths: dict[str, str]) -> None:
    """Raises `Wrong` unless the files hold the answers to this work on these arrays."""
    batch, heads, queries, dim = work["shape"]
    assert batch == 1
    few = heads * queries * work["keys"] <= 1 << 24
    for head in range(heads) if few else [heads - 1]:
        one = Head(work, arrays, head)
        match work["work"]:
            case "forward" | "call" | "decode":
                rows = one.all_rows() if queries <= 16384 else one.some_rows()
                out, lse = one.forward(rows)
                expect(paths, "out", work["shape"], head, rows, out)
                if "lse" in paths:
                    expect(paths, "lse", [1, heads, queries], head, rows, lse)
            case "linear" | "favor":
                rows = one.some_rows()
                expect(paths, "out", work["shape"], head, rows, one.linear(rows, paths.get("projection")))
            case "backward" | "training" if queries <= 16384:
                for name, expected in one.backward().items():
                    expect(paths, name, [1, heads, expected.shape[0], dim], head, slice(None), expected)
            case "backward":
                rows = one.some_rows()
                expect(paths, "dq", work["shape"], head, rows, one.dq(rows))
            case "map":
                height, width = queries // PIXELS, work["keys"] // PIXELS
                for pixel in range(0, PIXELS, 97):
                    weights = one.weights(torch.arange(pixel * height, (pixel + 1) * height))
                    expected = weights.reshape(height, PIXELS, width).amax((0, 2))
                    expect(paths, "map", [PIXELS, PIXELS], None, pixel, expected, scale=expected.max().item())
            case "tile":
                row, col = queries // 2 + 1, work["keys"] // 4 + 3
                expected = one.weights(torch.arange(row, row + TILE))[:, col : col + TILE]
                expect(paths, "tile", [TILE, TILE], None, slice(None), expected, scale=expected.max().item())
            case other:
                raise ValueError(f"no oracle for {other}")


def expect(paths: dict, name: str, shape: list[int], head: int | None, rows, expected: torch.Tensor, scale: float = 1.0) -> None:
    """|got − expected| ≤ TOLERANCE · (scale + |expected|). Weights are far below 1: their scale is the largest of them."""
    if name not in paths:
        raise Wrong(f"there is no {name}")
    got = np.memmap(paths[name], dtype="<f4", mode="r")
    if got.size != math.prod(shape):
        raise Wrong(f"{name} has {got.size} numbers, not {math.prod(shape)}")
    got = got.reshape(shape)
    got = torch.from_numpy(np.array(got if head is None else got[0, head])).double()[rows]
    excess = (got - expected).abs() / (TOLERANCE * (scale + expected.abs()))
    if not bool((excess <= 1).all()):
        where = f"head {head}" if head is not None else "the picture"
        raise Wrong(f"{name} is off by up to {excess.max().item():.3g} times the tolerance in {where}")


@dataclass
class Head:
    """One head of a work, in float64."""

    work: dict
    arrays: dict[str, np.ndarray]
    head: int

    def __post_init__(self):
        kv_head = self.head * self.work["kv_heads"] // self.work["shape"][1]
        heads = {"q": self.head, "k": kv_head, "v": kv_head}
        self.q, self.k, self.v = (torch.from_numpy(self.arrays[name][0, head]).double() for name, head in heads.items())
        self.queries, self.keys = self.q.shape[0], self.k.shape[0]
        self.scale = 1.0 / math.sqrt(self.q.shape[1])

    def all_rows(self) -> torch.Tensor:
        return torch.arange(self.queries)

    def some_rows(self) -> torch.Tensor:
        return torch.linspace(0, self.queries - 1, SAMPLED_ROWS).long()

    def scores(self, rows: torch.Tensor) -> torch.Tensor:
        scores = self.scale * self.q[rows] @ self.k.T
        distance = rows[:, None] + (self.keys - self.queries) - torch.arange(self.keys)
        match self.work["bias"]:
            case "alibi" | "alibi_function":
                scores -= float(alibi_slopes(self.work["shape"][1])[self.head]) * distance.abs()
            case "dense":
                scores += torch.from_numpy(self.arrays["bias"][0, self.head])[rows].double()
        match self.work["mask"]:
            case "causal":
                scores[distance < 0] = -torch.inf
            case "window":
                scores[(distance < 0) | (distance > self.work["left"])] = -torch.inf
            case "packed":
                lengths = torch.tensor(self.work["lengths"])
                sequence = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
                scores[sequence[rows][:, None] != sequence] = -torch.inf
            case "longformer":
                scores[distance.abs() > self.work["window"]] = -torch.inf
            case "blocks":
                with open(self.work["inputs"]["blocks"]) as file:
                    blocks = json.load(file)
                for i, row in enumerate(rows.tolist()):
                    hidden = torch.ones(self.keys // blocks["size"], dtype=torch.bool)
                    hidden[blocks["rows"][row // blocks["size"]]] = False
                    scores[i, hidden.repeat_interleave(blocks["size"])] = -torch.inf
            case "keep":
                scores[torch.from_numpy(self.arrays["keep"][0, 0])[rows] == 0] = -torch.inf
        return scores

    def weights(self, rows: torch.Tensor) -> torch.Tensor:
        return self.scores(rows).softmax(-1)

    def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        out, lse = [], []
        for block in rows.split(BLOCK):
            scores = self.scores(block)
            lse.append(scores.logsumexp(-1))
            out.append((scores - lse[-1][:, None]).exp() @ self.v)
        return torch.cat(out), torch.cat(lse)

    def linear(self, rows: torch.Tensor, projection: str | None) -> torch.Tensor:
        """φ(q) (Σ φ(k) vᵀ) / φ(q) Σ φ(k), with φ = elu + 1, or exp(w·x − |x|²/2) for x = q/d^¼ and each row w of a projection."""
        if projection is None:
            features = [torch.nn.functional.elu(x) + 1 for x in (self.q[rows], self.k)]
        else:
            w = torch.from_numpy(np.fromfile(projection, "<f4").reshape(-1, self.q.shape[1])).double()
            features = [
                (x @ w.T - x.square().sum(-1, keepdim=True) / 2).exp()
                for x in (math.sqrt(self.scale) * self.q[rows], math.sqrt(self.scale) * self.k)
            ]
        weights = features[0] @ features[1].sum(0)
        return features[0] @ (features[1].T @ self.v) / weights[:, None]

    def dscores(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        dout = torch.from_numpy(self.arrays["dout"][0, self.head]).double()[rows]
        weights = self.weights(rows)
        dweights = dout @ self.v.T
        return weights, dout, weights * (dweights - (dweights * weights).sum(-1, keepdim=True))

    def dq(self, rows: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.scale * self.dscores(block)[2] @ self.k for block in rows.split(BLOCK)])

    def backward(self) -> dict[str, torch.Tensor]:
        dq, dk, dv = [], torch.zeros_like(self.k), torch.zeros_like(self.v)
        for rows in self.all_rows().split(BLOCK):
            weights, dout, dscores = self.dscores(rows)
            dq.append(self.scale * dscores @ self.k)
            dk += self.scale * dscores.T @ self.q[rows]
            dv += weights.T @ dout
        return {"dq": torch.cat(dq), "dk": dk, "dv": dv}
