"""Attention for PyTorch, on the CPU, with gradients.

:func:`scaled_dot_product_attention` has PyTorch's own signature and meaning. :func:`attention` has the engine's options. Both work
under ``torch.compile(fullgraph=True)``; both compute in O(n) memory, forward and backward, whatever the options are.

What differs from PyTorch: ``float64`` is an error (the engine computes in float32); in a float mask ``-inf`` and the smallest
float32 both hide a key, and a query that sees nothing gives zeros, never NaN; dropped weights follow from a seed that is drawn from
PyTorch's generator, so that they are other ones than PyTorch's.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F

from foveal import _foveal

__all__ = ["attention", "enable", "scaled_dot_product_attention"]

_TYPES = (torch.float32, torch.float16, torch.bfloat16)


def _array(tensor: torch.Tensor) -> Any:
    """The numbers of a tensor as NumPy has them, in the same memory."""
    tensor = tensor.detach()
    if tensor.dtype is torch.bfloat16:
        return tensor.view(torch.uint16).numpy()
    return tensor.numpy()


def _tensor(array: Any, dtype: torch.dtype) -> torch.Tensor:
    """The other way round."""
    tensor = torch.from_numpy(array)
    return tensor.view(torch.bfloat16) if dtype is torch.bfloat16 else tensor


def _check(what: str, tensor: torch.Tensor) -> None:
    if tensor.device.type != "cpu":
        raise ValueError(
            f"{what} is on {tensor.device}, expected the CPU: foveal computes there; use {what}.cpu(), or PyTorch's own function"
        )
    if tensor.dtype not in _TYPES:
        advice = "; the engine computes in float32: use .float()" if tensor.dtype is torch.float64 else ""
        raise TypeError(f"{what} is a tensor of {tensor.dtype}, expected float32, float16 or bfloat16{advice}")
    if tensor.layout is not torch.strided:
        raise TypeError(f"{what} is a {tensor.layout} tensor, expected a strided one: use .to_dense()")


_threads = 0


def _follow_threads() -> None:
    """As many threads as PyTorch has been told to use."""
    global _threads
    threads = torch.get_num_threads()
    if threads != _threads:
        _threads = threads
        _foveal.set_num_threads(threads)


@functools.lru_cache(maxsize=256)
def _plain(numbers: str) -> _foveal.Attention:
    """An attention whose options are a few numbers. Most calls are of the same few kinds."""
    return _foveal.Attention(**_keywords(numbers))


def _keywords(numbers: str) -> dict[str, Any]:
    options = dict(_read(numbers))
    if (chunk := options.pop("chunk", None)) is not None:
        # Blocks that see themselves alone.
        options["pattern"] = _foveal.Pattern.fixed(chunk, 0)
    return options


def _engine(
    numbers: str,
    bias: torch.Tensor | None,
    mask: torch.Tensor | None,
    sinks: torch.Tensor | None,
    lengths: torch.Tensor | None,
    offsets: torch.Tensor | None,
    starts_q: torch.Tensor | None,
    starts_k: torch.Tensor | None,
    seed: torch.Tensor | None,
) -> _foveal.Attention:
    """The engine's attention, from what an operator may be given: tensors, and the other options written out."""
    if bias is mask is sinks is lengths is offsets is starts_q is seed is None:
        return _plain(numbers)
    options = _keywords(numbers)
    kind = options.pop("bias_kind", None)
    if bias is not None:
        table = bias.detach().float().numpy()
        if kind is None:
            options["bias"] = table
        elif kind[0] == "alibi":
            options["alibi"] = table
        else:
            options["bias"] = getattr(_foveal.Bias, kind[0])(table, *kind[1:])
        options.setdefault("bias_gradient", bias.requires_grad)
    if mask is not None:
        options["mask"] = mask.numpy()
    if sinks is not None:
        options["sinks"] = sinks.detach().float().numpy()
    if lengths is not None:
        options["lengths"] = lengths.numpy()
    if offsets is not None:
        options["align"] = offsets.numpy()
    if starts_q is not None:
        options["packed"] = (starts_q.numpy(), (starts_q if starts_k is None else starts_k).numpy())
    if seed is not None:
        options["seed"] = int(seed)
    return _foveal.Attention(**options)


def _write(options: dict[str, Any]) -> str:
    """Options of numbers and names as a string, which operators and compiled graphs can hold."""
    return repr(tuple(sorted((name, value) for name, value in options.items() if value is not None)))


@functools.lru_cache(maxsize=256)
def _read(numbers: str) -> tuple[tuple[str, Any], ...]:
    """Options of numbers and names, from a string."""
    import ast

    return tuple(ast.literal_eval(numbers))


_LEARNED = "Tensor? bias, Tensor? mask, Tensor? sinks, Tensor? lengths, Tensor? offsets, Tensor? starts_q, Tensor? starts_k, Tensor? seed"
_library = torch.library.Library("foveal", "DEF")
_library.define(f"attend(Tensor q, Tensor k, Tensor v, {_LEARNED}, str numbers) -> (Tensor, Tensor)")
_library.define(
    "attend_backward(Tensor dout, Tensor? dlse, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, "
    f"{_LEARNED}, str numbers, bool learn_bias) -> (Tensor, Tensor, Tensor, Tensor, Tensor)"
)


def _attend(q, k, v, bias, mask, sinks, lengths, offsets, starts_q, starts_k, seed, numbers):
    """The operator on real tensors. The output lies as [B, T, H, D], as what comes after attention wants it."""
    engine = _engine(numbers, bias, mask, sinks, lengths, offsets, starts_q, starts_k, seed)
    out, lse = engine.forward(_array(q), _array(k), _array(v), tokens_first=True)
    return _tensor(out, q.dtype), torch.from_numpy(lse)


def _attend_backward(dout, dlse, q, k, v, out, lse, bias, mask, sinks, lengths, offsets, starts_q, starts_k, seed, numbers, learn_bias):
    """Its gradients; an empty tensor for what has none."""
    if bias is not None:
        numbers = _write({**dict(_read(numbers)), "bias_gradient": learn_bias})
    engine = _engine(numbers, bias, mask, sinks, lengths, offsets, starts_q, starts_k, seed)
    dlse = None if dlse is None else dlse.detach().float().numpy()
    grads = engine.backward(_array(q), _array(k), _array(v), _array(out), lse.detach().numpy(), _array(dout), dlse)
    dbias = q.new_empty(0) if grads.dbias is None else torch.from_numpy(grads.dbias).to(bias.dtype)
    dsinks = q.new_empty(0) if grads.dsinks is None else torch.from_numpy(grads.dsinks).to(sinks.dtype)
    if bias is not None and grads.dbias is not None:
        dbias = dbias.reshape(bias.shape)
    return _tensor(grads.dq, q.dtype), _tensor(grads.dk, q.dtype).to(k.dtype), _tensor(grads.dv, q.dtype).to(v.dtype), dbias, dsinks


_library.impl("attend", _attend, "CPU")
_library.impl("attend_backward", _attend_backward, "CPU")


@torch.library.register_fake("foveal::attend")
def _attend_fake(q, k, v, *_):
    batch, heads, queries, _dim = q.shape
    out = q.new_empty(batch, queries, heads, v.shape[-1]).transpose(1, 2)
    return out, q.new_empty(batch, heads, queries, dtype=torch.float64)


@torch.library.register_fake("foveal::attend_backward")
def _attend_backward_fake(dout, dlse, q, k, v, out, lse, bias, mask, sinks, *rest):
    like = lambda x: x.new_empty(x.shape)  # noqa: E731
    dbias = like(bias) if bias is not None and rest[-1] else q.new_empty(0)
    dsinks = like(sinks) if sinks is not None else q.new_empty(0)
    return like(q), like(k), like(v), dbias, dsinks


class _Attend(torch.autograd.Function):
    """The operator with its gradient, for eager calls: less around it than a custom operator has."""

    @staticmethod
    def forward(ctx, q, k, v, bias, mask, sinks, lengths, offsets, starts_q, starts_k, seed, numbers):
        out, lse = _attend(q, k, v, bias, mask, sinks, lengths, offsets, starts_q, starts_k, seed, numbers)
        ctx.save_for_backward(q, k, v, out, lse, bias, mask, sinks, lengths, offsets, starts_q, starts_k, seed)
        ctx.numbers = numbers
        ctx.set_materialize_grads(False)
        return out, lse

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dout, dlse):
        return _gradients(ctx, dout, dlse, _attend_backward)


def _gradients(ctx: Any, dout: torch.Tensor | None, dlse: torch.Tensor | None, run: Any) -> tuple[Any, ...]:
    q, k, v, out, lse, bias, *_ = saved = ctx.saved_tensors
    if dout is None and dlse is None:
        return (None,) * 12
    if dout is None:
        dout = torch.zeros_like(out)
    needs = ctx.needs_input_grad
    learn = bool(bias is not None and needs[3])
    dq, dk, dv, dbias, dsinks = run(dout, dlse, *saved, ctx.numbers, learn)
    given = [dq, dk, dv, dbias if learn else None, None, dsinks if saved[7] is not None else None]
    return (*[x if need else None for x, need in zip(given, needs)], *[None] * 6)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
    q, k, v, *options, numbers = inputs
    ctx.save_for_backward(q, k, v, *output, *options)
    ctx.numbers = numbers
    ctx.set_materialize_grads(False)


def _operator_gradients(ctx: Any, dout: Any, dlse: Any) -> tuple[Any, ...]:
    return _gradients(ctx, dout, dlse, torch.ops.foveal.attend_backward)


torch.library.register_autograd("foveal::attend", _operator_gradients, setup_context=_setup_context)


def _eager(*tensors: torch.Tensor | None) -> bool:
    """Whether these are plain tensors, and nothing traces or records the call."""
    if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack():
        return False
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return False
    return all(x is None or type(x) in (torch.Tensor, torch.nn.Parameter) for x in tensors)


def _call(q, k, v, bias, mask, sinks, lengths, offsets, starts_q, starts_k, seed, numbers):
    """The shortest way: the engine alone, with autograd, or as an operator."""
    if not _eager(q, k, v, bias, sinks):
        return torch.ops.foveal.attend(q, k, v, bias, mask, sinks, lengths, offsets, starts_q, starts_k, seed, numbers)
    _check("q", q)
    _check("k", k)
    _check("v", v)
    _follow_threads()
    if torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in (q, k, v, bias, sinks)):
        return _Attend.apply(q, k, v, bias, mask, sinks, lengths, offsets, starts_q, starts_k, seed, numbers)
    return _attend(q, k, v, bias, mask, sinks, lengths, offsets, starts_q, starts_k, seed, numbers)


def _seed(dropout: float) -> torch.Tensor | None:
    """A seed from PyTorch's generator, so that ``torch.manual_seed`` makes a run repeatable."""
    return torch.randint(0, 2**62, ()) if dropout else None


_PLAIN_NUMBERS = _write({"align": "first"})


def scaled_dot_product_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """``torch.nn.functional.scaled_dot_product_attention``, with its signature and meaning.

    >>> import torch, foveal.torch
    >>> q = torch.randn(2, 4, 10, 8)
    >>> a = foveal.torch.scaled_dot_product_attention(q, q, q, is_causal=True)
    >>> b = torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
    >>> torch.allclose(a, b, atol=1e-5)
    True
    """
    if torch.is_autocast_enabled("cpu") and query.dtype is not torch.float64:
        lower = torch.get_autocast_dtype("cpu")
        query, key, value = query.to(lower), key.to(lower), value.to(lower)
        if attn_mask is not None and attn_mask.is_floating_point():
            attn_mask = attn_mask.to(lower)
    if not query.dtype == key.dtype == value.dtype:
        raise TypeError(f"query, key and value are of {query.dtype}, {key.dtype} and {value.dtype}; give them one type")
    if query.dim() == 4 and key.dim() == 4 and value.dim() == 4 and query.shape[0] == key.shape[0] == value.shape[0]:
        shape = None
    else:
        query, key, value, attn_mask, shape = _to_four_axes(query, key, value, attn_mask)
    heads, groups = query.shape[1], key.shape[1]
    if heads != groups or groups != value.shape[1]:
        if enable_gqa and value.shape[1] != groups:
            key, value = (x.repeat_interleave(heads // x.shape[1], 1) for x in (key, value))
        elif not enable_gqa:
            if groups != 1 and value.shape[1] != 1 and heads != 1:
                raise ValueError(
                    f"query has {heads} heads, key {groups} and value {value.shape[1]}; make them equal, or pass enable_gqa=True"
                )
            most = max(heads, groups, value.shape[1])
            query, key, value = (x.expand(-1, most, -1, -1) for x in (query, key, value))
    bias = mask = None
    if attn_mask is not None:
        if is_causal:
            raise ValueError("attn_mask and is_causal are both given; put the causal mask into attn_mask, or leave one out")
        bias, mask = _as_bias_or_mask(attn_mask, query, key)
    if dropout_p == 0.0 and scale is None and not is_causal:
        numbers = _PLAIN_NUMBERS
    else:
        causal = True if is_causal else None
        numbers = _numbers(align="first", causal=causal, scale=scale, dropout=dropout_p or None)
    out, _ = _call(query, key, value, bias, mask, None, None, None, None, None, _seed(dropout_p), numbers)
    return out if shape is None else out.reshape(shape)


def _numbers(**options: Any) -> str:
    if torch.compiler.is_compiling():
        return _write(options)
    return _numbers_kept(*options.items())


@functools.lru_cache(maxsize=256)
def _numbers_kept(*options: Any) -> str:
    return _write(dict(options))


def _to_four_axes(query, key, value, mask):
    """Any number of leading axes as one of sequences and one of heads, and the shape to give the output."""
    lead = torch.broadcast_shapes(query.shape[:-3], key.shape[:-3], value.shape[:-3]) if query.dim() > 3 else ()
    heads = [x.shape[-3] if x.dim() > 2 else 1 for x in (query, key, value)]

    def four(x: torch.Tensor, h: int) -> torch.Tensor:
        if x.dim() < 2:
            raise ValueError(f"a tensor of shape {tuple(x.shape)} has no tokens; expected [..., tokens, dim]")
        return x.expand(*lead, h, *x.shape[-2:]).reshape(-1, h, *x.shape[-2:]) if lead else x.reshape(1, h, *x.shape[-2:])

    shape = (*lead, *([max(heads)] if max(query.dim(), key.dim(), value.dim()) > 2 else []), query.shape[-2], value.shape[-1])
    if mask is not None and mask.dim() > 2 and len(lead) > 1:
        full = torch.broadcast_shapes(mask.shape, (*lead, 1, query.shape[-2], key.shape[-2]))
        mask = mask.expand(full).reshape(-1, *full[-3:])
    query, key, value = (four(x, h) for x, h in zip((query, key, value), heads))
    return query, key, value, mask, shape


def _as_bias_or_mask(mask, query, key):
    """PyTorch's mask as the engine takes it: its last axis in full, and up to four axes."""
    if mask.device.type not in ("cpu", "meta") and mask.device != query.device:
        raise ValueError(f"attn_mask is on {mask.device} and query on {query.device}; bring both to the CPU")
    if mask.shape[-1] != key.shape[-2]:
        mask = mask.expand(*mask.shape[:-1], key.shape[-2])
    if mask.dim() < 4:
        mask = mask[(None,) * (4 - mask.dim())]
    if mask.dtype is torch.bool:
        return None, mask
    if not mask.is_floating_point():
        raise TypeError(f"attn_mask is a tensor of {mask.dtype}, expected bool (True: visible) or the type of query")
    return mask, None


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    scale: float | None = None,
    causal: bool = False,
    window: tuple[int | None, int | None] | int | None = None,
    align: str | torch.Tensor = "last",
    lengths: torch.Tensor | None = None,
    mask: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    alibi: torch.Tensor | None = None,
    t5: torch.Tensor | None = None,
    t5_bidirectional: bool = True,
    t5_max_distance: int = 128,
    shaw: torch.Tensor | None = None,
    softcap: float | None = None,
    sinks: torch.Tensor | None = None,
    dropout: float = 0.0,
    packed: tuple[torch.Tensor, torch.Tensor] | None = None,
    return_lse: bool = False,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Attention with the engine's options on [batch, heads, tokens, dim]; see :class:`foveal.Attention`.

    ``bias``, ``alibi`` ([heads] or [batch, heads]), ``t5`` ([buckets, heads]), ``shaw`` and ``sinks`` ([heads]) have gradients. With
    ``return_lse`` also the log-sum-exp of every row, float64 [batch, heads, tokens], which has one, too.
    """
    options: dict[str, Any] = {"scale": scale, "causal": causal or None, "softcap": softcap, "dropout": dropout or None}
    if window is not None:
        options["window"] = (window, window) if isinstance(window, int) else tuple(window)
    given = {"alibi": alibi, "t5": t5, "shaw": shaw, "bias": bias}
    given = {name: table for name, table in given.items() if table is not None}
    if len(given) > 1:
        raise ValueError(f"{' and '.join(given)} are biases; add them up to one dense bias")
    table = None
    for name, table in given.items():
        if name == "t5":
            options["bias_kind"] = ("t5", t5_bidirectional, t5_max_distance)
        elif name != "bias":
            options["bias_kind"] = (name,)
    offsets = None
    if isinstance(align, str):
        options["align"] = align
    else:
        offsets = align
    if table is not None and "bias_kind" not in options and table.dim() < 4:
        table = table[(None,) * (4 - table.dim())]
    starts = packed if packed is not None else (None, None)
    if mask is not None and mask.dim() < 4:
        mask = mask[(None,) * (4 - mask.dim())]
    out, lse = _call(q, k, v, table, mask, sinks, lengths, offsets, *starts, _seed(dropout), _write(options))
    return (out, lse) if return_lse else out


@contextlib.contextmanager
def enable() -> Iterator[None]:
    """Within the block, modules that call ``F.scaled_dot_product_attention`` compute with foveal.

    Tensors that it does not compute, on another device or of another type, go PyTorch's own way.
    """
    before = F.scaled_dot_product_attention

    def either(query, *args, **keywords):
        if query.device.type == "cpu" and query.dtype in _TYPES:
            return scaled_dot_product_attention(query, *args, **keywords)
        return before(query, *args, **keywords)

    F.scaled_dot_product_attention = either
    try:
        yield
    finally:
        F.scaled_dot_product_attention = before
