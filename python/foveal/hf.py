"""Attention for the models of transformers.

::

    import foveal.hf
    foveal.hf.register()
    model = AutoModelForCausalLM.from_pretrained("gpt2", attn_implementation="foveal")

Every model that uses transformers' attention interface then computes with foveal: forward, generation with dynamic and static caches,
training. Causal masks, padding, sliding windows, chunks, packed sequences, softcap and sinks reach the engine as a few numbers; what a
model itself hands over dense (T5's bias, a mask of four axes) is passed on as it is. A mask that is a function of a model's own, such
as the one that lets image tokens see each other, is written out by transformers, one byte for each pair of tokens, shared by all heads.
What cannot be expressed raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface, masking_utils

from foveal import torch as ft

__all__ = ["MaskDescription", "attention_forward", "describe_mask", "register"]

# Who wants to see calls: see `foveal.watch`.
_watchers: list[Callable[..., None]] = []


class MaskDescription:
    """What a query may see, in a few numbers: it takes the place of a mask of [batch, 1, queries, keys]."""

    ndim = 4
    dtype = torch.bool
    is_nested = False

    def __init__(self, shape, offset, causal, window, keep, chunk, starts):
        #: As a dense mask would have it.
        self.shape = shape
        #: Query i stands at key i + offset: a number, or a tensor where a static cache counts for itself.
        self.offset = offset
        self.causal = causal
        #: Keys before and after a query that it sees; None for an open side.
        self.window = window
        #: [batch, keys] of bool, or None without padding.
        self.keep = keep
        #: The size of blocks that see themselves alone, or None.
        self.chunk = chunk
        #: Where packed sequences start in the tokens of the whole batch, or None.
        self.starts = starts

    def size(self, axis: int | None = None) -> Any:
        return self.shape if axis is None else self.shape[axis]

    def dim(self) -> int:
        return 4

    def contiguous(self) -> MaskDescription:
        return self

    def clone(self) -> MaskDescription:
        return self

    def detach(self) -> MaskDescription:
        return self

    def to(self, *_: Any, **__: Any) -> MaskDescription:
        return self

    def bool(self) -> MaskDescription:
        return self

    def __getitem__(self, at: Any) -> MaskDescription:
        # Models cut a mask to the keys there are; that follows from the keys themselves.
        everything = slice(None)
        if isinstance(at, tuple) and all(x in (everything, Ellipsis) for x in at[:-1]) and isinstance(at[-1], slice):
            if at[-1].start in (None, 0) and at[-1].step in (None, 1):
                return self
        raise NotImplementedError(f"a mask of foveal is described by a few numbers and cannot be cut as {at}")


def _parts(function: Callable[..., Any]) -> list[tuple[str, dict[str, Any]]]:
    """The functions that a mask function joins by "and", each by its name and what it holds."""
    name = f"{function.__module__}.{function.__qualname__}"
    cells = dict(zip(function.__code__.co_freevars, (c.cell_contents for c in function.__closure__ or ())))
    if name.endswith("masking_utils.and_masks.<locals>.and_mask"):
        return [part for one in cells["mask_functions"] for part in _parts(one)]
    if name.endswith("masking_utils.remap_positions_for_packed_sequence.<locals>.inner_mask"):
        # Distances and order within a packed sequence are those of the whole.
        return _parts(cells["mask_function"])
    return [(name.rsplit("masking_utils.", 1)[-1] if "masking_utils." in name else name, cells)]


def describe_mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int | torch.Tensor = 0,
    kv_offset: int | torch.Tensor = 0,
    mask_function: Callable[..., Any] = masking_utils.causal_mask_function,
    attention_mask: torch.Tensor | None = None,
    **keywords: Any,
) -> MaskDescription | torch.Tensor | None:
    """What transformers asks for instead of a mask."""
    if isinstance(attention_mask, MaskDescription):
        # Made before the call, by `generate`.
        return attention_mask
    compiling = torch.compiler.is_compiling()
    causal, left, right, chunk, starts = False, None, None, None, None

    def dense() -> torch.Tensor | None:
        return masking_utils.sdpa_mask(
            batch_size=batch_size, q_length=q_length, kv_length=kv_length, q_offset=q_offset, kv_offset=kv_offset,
            mask_function=mask_function, attention_mask=attention_mask, **{**keywords, "allow_is_causal_skip": False},
        )

    for name, held in _parts(mask_function):
        if name == "causal_mask_function":
            causal = True
        elif name == "bidirectional_mask_function":
            pass
        elif name == "sliding_window_overlay.<locals>.inner_mask":
            # kv > q − W: the token itself and W − 1 before it.
            left = held["sliding_window"] - 1
        elif name == "sliding_window_bidirectional_overlay.<locals>.inner_mask":
            left = right = held["sliding_window"]
        elif name == "chunked_overlay.<locals>.inner_mask" and not compiling:
            if isinstance(kv_offset, torch.Tensor) or kv_offset or bool(held["left_padding"].any()):
                return dense()
            chunk = held["chunk_size"]
        elif name == "packed_sequence_mask_function.<locals>.inner_mask" and not compiling:
            starts = _starts(held["packed_sequence_mask"], batch_size)
        else:
            return dense()
    keep = None
    if attention_mask is not None:
        padding = masking_utils.prepare_padding_mask(attention_mask, kv_length, kv_offset)
        first = kv_offset
        if isinstance(first, torch.Tensor):
            keep = padding[:, torch.arange(kv_length, device=padding.device) + first]
        else:
            keep = padding[:, first : first + kv_length]
        if not compiling and bool(keep.all()):
            keep = None
    if starts is not None and keep is not None:
        return dense()
    offset = q_offset - kv_offset
    plain = keep is None and chunk is None and starts is None and left is None and right is None
    if plain and not isinstance(offset, torch.Tensor):
        # Everything is visible: to an encoder, or to a single query at the end of the keys. A causal mask is always said: not
        # every module that is called with one knows that it is causal.
        if not causal or (q_length == 1 and not compiling and offset + 1 >= kv_length):
            return None
    shape = torch.Size((batch_size, 1, q_length, kv_length))
    return MaskDescription(shape, offset, causal, (left, right), keep, chunk, starts)


def _starts(numbers: torch.Tensor, batch: int) -> list[int]:
    """Where sequences start, from the number of the sequence that each token belongs to: [batch, tokens]."""
    tokens = numbers.shape[1]
    numbers = numbers.expand(batch, tokens)
    begins = torch.ones_like(numbers, dtype=torch.bool)
    begins[:, 1:] = numbers[:, 1:] != numbers[:, :-1]
    return [*begins.reshape(-1).nonzero().reshape(-1).tolist(), batch * tokens]


def attention_forward(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: MaskDescription | torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    position_bias: torch.Tensor | None = None,
    **keywords: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """What models of transformers call: the output as [batch, tokens, heads, dim], and the weights where they are asked for."""
    if keywords.get("cache") is not None and type(keywords["cache"]).__name__ == "PagedAttentionCache":
        raise NotImplementedError("foveal has no continuous batching in transformers; use model.generate")
    options: dict[str, Any] = {
        "scale": None if scaling is None else float(scaling), "softcap": softcap, "dropout": dropout or None,
    }
    bias, mask, offsets, starts = position_bias, None, None, None
    keys = key.shape[2]
    if isinstance(attention_mask, MaskDescription):
        described = attention_mask
        options["causal"] = described.causal or None
        if described.window != (None, None):
            options["window"] = described.window
        if described.chunk is not None:
            options["chunk"] = described.chunk
        if described.starts is not None:
            return _packed(module, query, key, value, described, s_aux, options, bias)
        if isinstance(described.offset, torch.Tensor):
            offsets = described.offset.reshape(-1).to(torch.int64).expand(query.shape[0])
        elif described.causal or described.window != (None, None) or described.chunk is not None:
            offset = int(described.offset)
            if offset == 0:
                options["align"] = "first"
            elif offset != keys - query.shape[2]:
                offsets = torch.full((query.shape[0],), offset)
        if described.keep is not None:
            mask = _fit(described.keep[:, None, None, :], keys)
    elif attention_mask is not None:
        attention_mask = _fit(attention_mask, keys)
        if attention_mask.dtype is torch.bool:
            mask = attention_mask
        else:
            bias = attention_mask if bias is None else bias + attention_mask
    else:
        causal = is_causal if is_causal is not None else getattr(module, "is_causal", True)
        if bool(causal) and query.shape[2] > 1:
            options["causal"], options["align"] = True, "first"
    if bias is not None:
        bias = _fit(bias, keys)
    numbers = ft._numbers(**options)
    seed = ft._seed(dropout)
    out, lse = ft._call(query, key, value, bias, mask, s_aux, None, offsets, None, None, seed, numbers)
    for watcher in _watchers:
        watcher(module, query, key, value, lse, numbers, bias, mask, s_aux, offsets)
    weights = None
    if keywords.get("output_attentions"):
        weights = _weights(query, key, numbers, bias, mask, s_aux, offsets)
    return out.transpose(1, 2), weights


def _fit(mask: torch.Tensor, keys: int) -> torch.Tensor:
    """A mask or bias with four axes, for the keys that there are."""
    if mask.dim() < 4:
        mask = mask[(None,) * (4 - mask.dim())]
    if mask.shape[-1] > keys:
        return mask[..., :keys]
    if mask.shape[-1] < keys:
        if mask.shape[-1] == 1:
            return mask.expand(*mask.shape[:-1], keys)
        raise ValueError(f"a mask for {mask.shape[-1]} keys does not fit {keys} keys")
    return mask


def _packed(module, query, key, value, described, sinks, options, bias):
    """Sequences that follow each other in the rows of a batch, all as one row."""
    if bias is not None:
        raise NotImplementedError("packed sequences with a bias over all pairs cannot be expressed; pass a padded batch")
    batch, heads, tokens, _ = query.shape
    row = lambda x: x.transpose(0, 1).reshape(1, x.shape[1], batch * tokens, x.shape[3])  # noqa: E731
    starts = torch.tensor(described.starts, dtype=torch.int64)
    query, key, value = row(query), row(key), row(value)
    numbers = ft._numbers(**options)
    seed = ft._seed(options["dropout"] or 0.0)
    out, lse = ft._call(query, key, value, None, None, sinks, None, None, starts, starts, seed, numbers)
    for watcher in _watchers:
        watcher(module, query, key, value, lse, numbers, None, None, sinks, None, starts)
    return out.transpose(1, 2).reshape(batch, tokens, heads, -1), None


def _weights(query, key, numbers, bias, mask, sinks, offsets):
    """All weights, for those who ask for them: n × n."""
    engine = ft._engine(numbers, bias, mask, sinks, None, offsets, None, None, None)
    return torch.from_numpy(engine.weights(ft._array(query), ft._array(key))).to(query.dtype)


def register(name: str = "foveal") -> None:
    """Makes ``attn_implementation=name`` known to transformers."""
    AttentionInterface.register(name, attention_forward)
    AttentionMaskInterface.register(name, describe_mask)
