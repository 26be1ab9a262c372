"""The functions themselves."""

from __future__ import annotations

from typing import Any

import torch

from foveal import torch as ft

__all__ = [
    "flash_attn_func",
    "flash_attn_kvpacked_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_varlen_kvpacked_func",
    "flash_attn_varlen_qkvpacked_func",
    "flash_attn_with_kvcache",
]

#: Weights up to which they are given back where ``return_attn_probs`` asks for them.
MOST_WEIGHTS = 1 << 24


def _numbers(dropout_p, softmax_scale, causal, window_size, softcap, slopes) -> str:
    """The options as the engine has them."""
    left, right = window_size
    options: dict[str, Any] = {
        "scale": softmax_scale,
        "softcap": softcap or None,
        "dropout": dropout_p or None,
        "causal": True if causal else None,
        "bias_kind": ("alibi",) if slopes is not None else None,
    }
    if left >= 0 or right >= 0:
        options["window"] = (left if left >= 0 else None, right if right >= 0 else None)
    return ft._numbers(**options)


def _run(q, k, v, numbers, slopes, dropout_p, *, mask=None, lengths=None, offsets=None, starts=(None, None)):
    """(out, lse, weights as a function), of tensors [batch, heads, tokens, dim]. A row that sees nothing has an lse of +∞, as theirs."""
    out, lse = ft._call(q, k, v, slopes, mask, None, lengths, offsets, *starts, ft._seed(dropout_p), numbers)

    def weights() -> torch.Tensor | None:
        if q.shape[0] * q.shape[1] * q.shape[2] * k.shape[2] > MOST_WEIGHTS:
            return None
        engine = ft._engine(numbers, slopes, mask, None, lengths, offsets, *starts, None)
        return torch.from_numpy(engine.weights(ft._array(q), ft._array(k))).to(q.dtype)

    return out, lse.masked_fill(lse == float("-inf"), float("inf")).float(), weights


def flash_attn_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Any:
    """q [batch, queries, heads, dim], k and v [batch, keys, heads or fewer, dim] → [batch, queries, heads, dim].

    ``return_attn_probs``: also the log-sum-exp [batch, heads, queries] and, for small inputs, the weights before dropout.
    ``deterministic`` changes nothing: results always are.
    """
    numbers = _numbers(dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes)
    out, lse, weights = _run(*(x.transpose(1, 2) for x in (q, k, v)), numbers, alibi_slopes, dropout_p)
    out = out.transpose(1, 2)
    return (out, lse, weights()) if return_attn_probs else out


def flash_attn_kvpacked_func(
    q: torch.Tensor,
    kv: torch.Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Any:
    """The same with keys and values in one tensor: kv [batch, keys, 2, heads or fewer, dim]."""
    return flash_attn_func(
        q, kv[:, :, 0], kv[:, :, 1], dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes, deterministic, return_attn_probs
    )


def flash_attn_qkvpacked_func(
    qkv: torch.Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Any:
    """The same with all three in one tensor: qkv [batch, tokens, 3, heads, dim]."""
    return flash_attn_func(
        *qkv.unbind(2), dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes, deterministic, return_attn_probs
    )


def flash_attn_varlen_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    block_table: torch.Tensor | None = None,
) -> Any:
    """Sequences of different lengths, one after the other: q [all queries, heads, dim]; ``cu_seqlens`` say where each starts.

    With ``block_table`` [batch, blocks], k and v are pages [blocks, tokens of a page, heads, dim]. The log-sum-exp is
    [heads, all queries].
    """
    if block_table is not None:
        k, v = (_of_pages(x, block_table, cu_seqlens_k) for x in (k, v))
    numbers = _numbers(dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes)
    packed = [x.transpose(0, 1)[None] for x in (q, k, v)]
    starts = (cu_seqlens_q.to(torch.int64), cu_seqlens_k.to(torch.int64))
    out, lse, weights = _run(*packed, numbers, alibi_slopes, dropout_p, starts=starts)
    out = out[0].transpose(0, 1)
    return (out, lse[0], weights()) if return_attn_probs else out


def _of_pages(pages: torch.Tensor, table: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
    """The tokens of every sequence, one after the other."""
    lengths = (starts[1:] - starts[:-1]).tolist()
    rows = [pages[table[b].long()].reshape(-1, *pages.shape[2:])[:length] for b, length in enumerate(lengths)]
    return torch.cat(rows)


def flash_attn_varlen_kvpacked_func(
    q: torch.Tensor,
    kv: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Any:
    """The same with keys and values in one tensor: kv [all keys, 2, heads, dim]."""
    return flash_attn_varlen_func(
        q, kv[:, 0], kv[:, 1], cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p, softmax_scale, causal, window_size,
        softcap, alibi_slopes, deterministic, return_attn_probs,
    )


def flash_attn_varlen_qkvpacked_func(
    qkv: torch.Tensor,
    cu_seqlens: torch.Tensor,
    max_seqlen: int,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Any:
    """The same with all three in one tensor: qkv [all tokens, 3, heads, dim]."""
    return flash_attn_varlen_func(
        *qkv.unbind(1), cu_seqlens, cu_seqlens, max_seqlen, max_seqlen, dropout_p, softmax_scale, causal, window_size, softcap,
        alibi_slopes, deterministic, return_attn_probs,
    )


def _rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, positions: torch.Tensor, interleaved: bool) -> torch.Tensor:
    """x [batch, tokens, heads, dim], the first coordinates of which are turned by the angles of ``positions`` [batch, tokens]."""
    turned = 2 * cos.shape[-1]
    cos, sin = (y.float()[positions][:, :, None, :] for y in (cos, sin))
    part = x[..., :turned].float()
    a, b = (part[..., ::2], part[..., 1::2]) if interleaved else part.chunk(2, -1)
    first, second = a * cos - b * sin, b * cos + a * sin
    both = torch.stack((first, second), -1).flatten(-2) if interleaved else torch.cat((first, second), -1)
    return torch.cat((both.to(x.dtype), x[..., turned:]), -1)


def flash_attn_with_kvcache(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    k: torch.Tensor | None = None,
    v: torch.Tensor | None = None,
    rotary_cos: torch.Tensor | None = None,
    rotary_sin: torch.Tensor | None = None,
    cache_seqlens: int | torch.Tensor | None = None,
    cache_batch_idx: torch.Tensor | None = None,
    cache_leftpad: torch.Tensor | None = None,
    block_table: torch.Tensor | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    rotary_interleaved: bool = True,
    alibi_slopes: torch.Tensor | None = None,
    num_splits: int = 0,
    return_softmax_lse: bool = False,
) -> Any:
    """New queries against a cache [batch, room, heads, dim], or pages [blocks, tokens of a page, heads, dim] with ``block_table``.

    With k and v, these are written into the cache first, in place, after its ``cache_seqlens`` tokens, and turned if there are
    rotary tables. Like theirs it has no gradient. ``num_splits`` changes nothing: the engine splits the keys by itself.
    """
    if any(x.requires_grad for x in (q, k_cache, v_cache)) and torch.is_grad_enabled():
        raise RuntimeError("flash_attn_with_kvcache has no gradient; use flash_attn_func, or torch.no_grad()")
    batch, queries = q.shape[:2]
    room = k_cache.shape[1] if block_table is None else block_table.shape[1] * k_cache.shape[1]
    if cache_seqlens is None:
        lengths = torch.full((batch,), room if k is None else 0)
    elif isinstance(cache_seqlens, int):
        lengths = torch.full((batch,), cache_seqlens)
    else:
        lengths = cache_seqlens.to(torch.int64)
    pads = torch.zeros(batch, dtype=torch.int64) if cache_leftpad is None else cache_leftpad.to(torch.int64)
    rows = torch.arange(batch) if cache_batch_idx is None else cache_batch_idx.to(torch.int64)
    if rotary_cos is not None:
        # Without a mask by distance all queries stand at the end of the cache.
        ahead = torch.arange(queries) if causal or window_size != (-1, -1) else torch.zeros(queries, dtype=torch.int64)
        q = _rotated(q, rotary_cos, rotary_sin, (lengths - pads)[:, None] + ahead, rotary_interleaved)
    if k is not None:
        new = k.shape[1]
        if int((lengths + new).max()) > room:
            raise ValueError(f"the cache has room for {room} tokens, and {int((lengths + new).max())} are to be in it")
        if rotary_cos is not None:
            k = _rotated(k, rotary_cos, rotary_sin, (lengths - pads)[:, None] + torch.arange(new), rotary_interleaved)
        places = lengths[:, None] + torch.arange(new)
        if block_table is None:
            at = (rows[:, None], places)
        else:
            size = k_cache.shape[1]
            at = (block_table.long().gather(1, places // size), places % size)
        k_cache[at], v_cache[at] = k.to(k_cache.dtype), v.to(v_cache.dtype)
        lengths = lengths + new
    if block_table is not None:
        keys, values = (x[block_table.long()].flatten(1, 2) for x in (k_cache, v_cache))
    elif cache_batch_idx is not None:
        keys, values = k_cache[rows], v_cache[rows]
    else:
        keys, values = k_cache[:batch], v_cache[:batch]
    most = int(lengths.max()) if batch else 0
    keys, values = keys[:, :most], values[:, :most]
    mask = None
    if cache_leftpad is not None:
        mask = (torch.arange(most)[None] >= pads[:, None])[:, None, None]
    numbers = _numbers(0.0, softmax_scale, causal, window_size, softcap, alibi_slopes)
    turned = [x.transpose(1, 2) for x in (q, keys, values)]
    out, lse, _ = _run(*turned, numbers, alibi_slopes, 0.0, mask=mask, lengths=lengths, offsets=lengths - queries)
    out = out.transpose(1, 2)
    return (out, lse) if return_softmax_lse else out
