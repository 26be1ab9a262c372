"""Exact attention at hardware speed on the CPU, and a way to look at all of it.

>>> import numpy as np, foveal
>>> q, k, v = np.random.default_rng(0).standard_normal((3, 1, 8, 512, 64), np.float32)
>>> out = foveal.attention(q, k, v, causal=True)
>>> out.shape
(1, 8, 512, 64)

The matrix of weights is never stored. What is kept of each row is its log-sum-exp, from which any weight follows exactly:

>>> attention = foveal.Attention(causal=True)
>>> out, lse = attention.forward(q, k, v)
>>> attention.tile(q, k, lse, head=3, rows=(100, 116), cols=(0, 64)).shape
(16, 64)
>>> attention.map(q, k, lse, head=3, size=(64, 64)).shape
(64, 64)

``foveal.torch`` is the same for PyTorch, with gradients; ``foveal.hf`` for the models of transformers; ``foveal.watch`` shows what
a model attends to; ``foveal.flash_attn`` has the functions of the package of that name; ``foveal.load`` opens models that need
neither. Each is imported when it is first used: ``import foveal`` takes NumPy alone.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from foveal._foveal import (
    AdditiveAttention,
    Attention,
    Bias,
    Error,
    Generation,
    Gradients,
    KvCache,
    LinearAttention,
    LuongAttention,
    Model,
    Pattern,
    Rope,
    __version__,
    alibi_slopes,
    get_num_threads,
    positional_encoding,
    set_num_threads,
)

__all__ = [
    "AdditiveAttention",
    "Attention",
    "Bias",
    "Error",
    "Generation",
    "Gradients",
    "KvCache",
    "LinearAttention",
    "LuongAttention",
    "Model",
    "Pattern",
    "Rope",
    "Trace",
    "__version__",
    "alibi_slopes",
    "attention",
    "get_num_threads",
    "load",
    "positional_encoding",
    "read",
    "set_num_threads",
    "watch",
]

_SUBMODULES = {"flash_attn", "hf", "notebook", "torch"}


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, **options: Any) -> np.ndarray:
    """softmax(q·kᵀ/√d)·v of arrays [tokens, dim], [heads, tokens, dim] or [batch, heads, tokens, dim].

    The options are those of :class:`Attention`.

    >>> x = np.eye(3, dtype=np.float32)
    >>> attention(x, x, x, scale=100.0).round(3)
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    axes = np.ndim(q)
    if axes == 4:
        return Attention(**options).forward(q, k, v)[0]
    if axes not in (2, 3) or np.ndim(k) != axes or np.ndim(v) != axes:
        raise Error(
            f"q, k and v have {axes}, {np.ndim(k)} and {np.ndim(v)} axes; give all of them two to four: "
            "[tokens, dim], [heads, tokens, dim] or [batch, heads, tokens, dim]"
        )
    lead = (None,) * (4 - axes)
    out = Attention(**options).forward(q[lead], k[lead], v[lead])[0]
    return out[(0,) * (4 - axes)]


def load(name: str) -> Model:
    """Opens a model with its tokenizer: a folder or file in the formats of Hugging Face or GGUF, a name on the hub, or one of
    those inside the package: ``shakespeare``, ``translate-en-ko``, ``digits``.

    >>> model = load("translate-en-ko")
    >>> "책" in model.translate("The student reads two books.")
    True
    """
    return Model(str(name))


def read(model: Model | str, text: str, *, chat: bool = False) -> Any:
    """Lets a model of :func:`load` read a text: a :class:`foveal.Trace` of all that it attended to.

    >>> trace = read("shakespeare", "To be or not to be")
    >>> trace.weights(layer=0, head=0).shape == (len(trace.tokens), len(trace.tokens))
    True
    """
    from foveal.trace import of_reading

    opened = load(model) if isinstance(model, str) else model
    return of_reading(opened.name, opened.read(text, chat=chat))


def watch(model: Any, *, layers: Any = None, tokens: Any = None, tokenizer: Any = None) -> Any:
    """Keeps queries, keys, values and log-sum-exp of every attention that ``model`` computes within the block: O(n), not n × n.

    ::

        with foveal.watch(model, tokenizer=tokenizer) as trace:
            model(**inputs)
        trace.weights(layer=3, head=5)
        trace.show()

    See :class:`foveal.Trace` for what can be asked.
    """
    from foveal._watch import Watch

    return Watch(model, layers=layers, tokens=tokens, tokenizer=tokenizer)


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"foveal.{name}")
    if name == "Trace":
        from foveal.trace import Trace

        return Trace
    raise AttributeError(f"module 'foveal' has no attribute {name!r}")
