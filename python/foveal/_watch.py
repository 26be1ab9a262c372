"""Watching a model of PyTorch."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import torch
import torch.nn.functional as F

from foveal import torch as ft
from foveal.trace import Trace, _Layer, labelled

# What the layer that joins the heads is called, as a child of an attention module or beside it.
_OUTPUTS = ("o_proj", "out_proj", "c_proj", "dense", "wo", "o", "Wo", "proj", "to_out", "out_lin", "output.dense", "projection")
_CROSS = ("cross", "encoder_attn", "EncDec", "encoder_attention")


class _Call:
    """What one call of attention was given, and the log-sum-exp it gave."""

    def __init__(self, q, k, v, lse, numbers, bias, mask, sinks, offsets, starts):
        self.q, self.lse = q.detach(), lse.detach()
        self.k, self.v = k.detach(), v.detach()
        if offsets is not None:
            # A static cache writes the next tokens into the same memory.
            self.k, self.v = self.k.clone(), self.v.clone()
            offsets = offsets.clone()
        self.numbers, self.bias, self.mask, self.sinks, self.offsets, self.starts = numbers, bias, mask, sinks, offsets, starts


class Watch:
    """A block in which a model is watched; see :func:`foveal.watch`."""

    def __init__(self, model: Any, *, layers: Any = None, tokens: Any = None, tokenizer: Any = None):
        self.model, self.tokens, self.tokenizer = model, tokens, tokenizer
        self.wanted = None if layers is None else {layers} if isinstance(layers, int) else set(layers)
        self.names = {id(module): name for name, module in model.named_modules()}
        self.calls: dict[tuple[str, int], list[_Call]] = {}
        self.modules: dict[tuple[str, int], Any] = {}
        self.numbers: dict[str, list[int]] = {}
        self.inputs: dict[str, list[torch.Tensor]] = {}
        self.trace = Trace(getattr(getattr(model, "config", None), "name_or_path", "") or type(model).__name__)

    def __enter__(self) -> Trace:
        self.stack = contextlib.ExitStack()
        with contextlib.ExitStack() as stack:
            hook = self.model.register_forward_pre_hook(self._keep_inputs, with_kwargs=True)
            stack.callback(hook.remove)
            if not self._watch_transformers(stack):
                self._watch_torch(stack)
            self.stack = stack.pop_all()
        return self.trace

    def __exit__(self, *error: Any) -> None:
        self.stack.close()
        self._finish()

    def _watch_transformers(self, stack: contextlib.ExitStack) -> bool:
        """Models of transformers compute with foveal within the block, and say so to whoever listens."""
        if not hasattr(self.model, "set_attn_implementation"):
            return False
        from foveal import hf

        hf.register()
        configs = {id(c): c for m in self.model.modules() if (c := getattr(m, "config", None)) is not None}
        before = [(c, c._attn_implementation) for c in configs.values() if hasattr(c, "_attn_implementation")]
        try:
            self.model.set_attn_implementation("foveal")
        except ValueError:
            return False

        def restore() -> None:
            for config, implementation in before:
                config._attn_implementation = implementation

        stack.callback(restore)
        hf._watchers.append(self._on_call)
        stack.callback(hf._watchers.remove, self._on_call)
        return True

    def _watch_torch(self, stack: contextlib.ExitStack) -> None:
        """Modules of PyTorch's own, and whatever calls its function."""
        before = F.scaled_dot_product_attention
        current: list[Any] = []

        @functools.wraps(before)
        def watched(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
            if query.dim() != 4 or query.device.type != "cpu" or query.dtype not in ft._TYPES:
                return before(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
            bias, mask = (None, None) if attn_mask is None else ft._as_bias_or_mask(attn_mask, query, key)
            numbers = ft._numbers(align="first", causal=is_causal or None, scale=scale, dropout=dropout_p or None)
            out, lse = ft._call(query, key, value, bias, mask, None, None, None, None, None, ft._seed(dropout_p), numbers)
            module = current[-1] if current else None
            self._on_call(module, query, key, value, lse, numbers, bias, mask, None, None)
            return out

        F.scaled_dot_product_attention = watched
        stack.callback(setattr, F, "scaled_dot_product_attention", before)
        # The inference path of nn.MultiheadAttention and nn.TransformerEncoderLayer calls no function that can be watched.
        fast = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        stack.callback(torch.backends.mha.set_fastpath_enabled, fast)
        # Without the weights, nn.MultiheadAttention computes by that function, too.
        original = F.multi_head_attention_forward
        functional = functools.partial(self._without_weights, original)
        F.multi_head_attention_forward = functional
        stack.callback(setattr, F, "multi_head_attention_forward", original)
        for module in self.model.modules():
            if isinstance(module, torch.nn.MultiheadAttention):
                enter = module.register_forward_pre_hook(lambda m, _: current.append(m))
                leave = module.register_forward_hook(lambda *_: current.pop() and None, always_call=True)
                stack.callback(enter.remove)
                stack.callback(leave.remove)

    def _without_weights(self, original: Any, *args: Any, need_weights: bool = True, average_attn_weights: bool = True, **keywords: Any):
        out, _ = original(*args, need_weights=False, average_attn_weights=average_attn_weights, **keywords)
        if not need_weights:
            return out, None
        call = self.last
        engine = ft._engine(call.numbers, call.bias, call.mask, None, None, None, None, None, None)
        weights = torch.from_numpy(engine.weights(ft._array(call.q), ft._array(call.k)))
        weights = weights.mean(1) if average_attn_weights else weights
        return out, weights if args[0].dim() == 3 else weights.squeeze(0)

    def _keep_inputs(self, module: Any, args: Any, keywords: Any) -> None:
        given = dict(keywords)
        if args and isinstance(args[0], torch.Tensor):
            given.setdefault("input_ids", args[0])
        for name in ("input_ids", "decoder_input_ids"):
            ids = given.get(name)
            if isinstance(ids, torch.Tensor) and not ids.is_floating_point() and ids.dim() == 2:
                self.inputs.setdefault(name, []).append(ids.detach())

    def _on_call(self, module, q, k, v, lse, numbers, bias, mask, sinks, offsets, starts=None) -> None:
        kind = self._kind(module, numbers, q, k)
        number = self._number(kind, module)
        self.last = call = _Call(q, k, v, lse, numbers, bias, mask, sinks, offsets, starts)
        if self.wanted is None or number in self.wanted:
            self.calls.setdefault((kind, number), []).append(call)
            self.modules[kind, number] = module

    def _kind(self, module: Any, numbers: str, q: torch.Tensor, k: torch.Tensor) -> str:
        name = self.names.get(id(module), "")
        if getattr(module, "is_cross_attention", False) is True or any(word in name for word in _CROSS):
            return "cross"
        if "'causal', True" in numbers or getattr(module, "is_causal", False) is True:
            return "decoder"
        parent = name.split(".")
        if "decoder" in parent or getattr(module, "is_decoder", False) is True:
            return "decoder"
        return "encoder"

    def _number(self, kind: str, module: Any) -> int:
        """The layers of a kind count in the order in which they are first called; those without a module, call by call."""
        known = self.numbers.setdefault(kind, [])
        key = id(module) if module is not None else -1
        if module is not None and key in known:
            return known.index(key)
        known.append(key)
        return len(known) - 1

    def _finish(self) -> None:
        for site, calls in self.calls.items():
            self.trace._layers[site] = _joined(calls, _output_of(self.model, self.names, self.modules[site], calls[0]))
        ids = {name: _sequence(kept) for name, kept in self.inputs.items()}
        read, written = ids.get("input_ids"), ids.get("decoder_input_ids")
        own = {
            "encoder": (read, read),
            "decoder": (written, written) if written is not None else (read, read),
            "cross": (written, read),
        }
        for kind in self.trace.kinds:
            _, _, queries, keys = self.trace.shape(self.trace._first(kind), kind)
            self.trace._sides[kind] = [self._labels(x, count) for x, count in zip(own[kind], (queries, keys))]
        if read is not None:
            self.trace._ids = (read if written is None else written).numpy()
        if self.tokenizer is not None and read is not None:
            self.trace.text = self.tokenizer.decode(read[0], skip_special_tokens=True)

    def _labels(self, ids: torch.Tensor | None, count: int) -> dict[str, Any]:
        if self.tokens is not None and len(self.tokens) == count:
            return labelled(list(self.tokens))
        if ids is None or ids.shape[1] < count:
            return labelled([str(n) for n in range(count)])
        row = ids[0, :count].tolist()
        if self.tokenizer is None:
            return labelled([str(n) for n in row], row)
        special = set(getattr(self.tokenizer, "all_special_ids", ()))
        side = labelled([_text(self.tokenizer, token) for token in row], row, [token in special for token in row])
        return side


def _text(tokenizer: Any, token: int) -> str:
    """What a token is called: its text, with the space before it."""
    name = tokenizer.convert_ids_to_tokens(token)
    if name is None:
        return str(token)
    if isinstance(name, bytes):
        return name.decode("utf-8", "replace")
    text = tokenizer.decode([token])
    space = name[:1] in ("Ġ", "▁", "Ċ")
    return (" " if space and not text.startswith(" ") else "") + (text or name)


def _sequence(kept: list[torch.Tensor]) -> torch.Tensor:
    """Tokens that were read one after the other; the longest call where they were not."""
    if len({x.shape[0] for x in kept}) > 1:
        return max(kept, key=lambda x: x.shape[1])
    return torch.cat(kept, 1)


def _output_of(model: Any, names: dict[int, str], module: Any, call: _Call) -> Any:
    """W_o, [dim, heads · value dim], if the layer that joins the heads is found."""
    width = call.q.shape[1] * call.v.shape[-1]
    parent = None
    if module is not None and "." in (name := names.get(id(module), "")):
        parent = model.get_submodule(name.rsplit(".", 1)[0])
    for owner in (module, parent):
        for name in _OUTPUTS if owner is not None else ():
            try:
                layer = owner.get_submodule(name)
            except AttributeError:
                continue
            weight = getattr(layer, "weight", None)
            if weight is None or weight.dim() != 2:
                continue
            # GPT-2's Conv1D has its weight the other way round.
            weight = weight.detach().T if type(layer).__name__ == "Conv1D" else weight.detach()
            if weight.shape[1] == width:
                return weight.float().contiguous().numpy()
    return None


def _joined(calls: list[_Call], output: Any) -> _Layer:
    """Calls that followed each other with a cache, as one; else the last."""
    last = calls[-1]
    queries = sum(call.q.shape[2] for call in calls)
    follow = len(calls) > 1 and len({call.q.shape[:2] for call in calls}) == 1
    follow = follow and all(x.bias is None and x.starts is None for x in calls)
    offsets, numbers, mask = last.offsets, last.numbers, last.mask
    if follow and queries == last.k.shape[2] and offsets is None:
        q, lse = torch.cat([call.q for call in calls], 2), torch.cat([call.lse for call in calls], 2)
        # The first call says how queries see keys; a single query that sees all of its past says nothing.
        options = dict(ft._read(calls[0].numbers))
        options.update(causal=True, align="last")
        numbers = ft._write(options)
    elif follow and offsets is not None and queries <= last.k.shape[2]:
        q, lse = torch.cat([call.q for call in calls], 2), torch.cat([call.lse for call in calls], 2)
        last.k, last.v = last.k[:, :, :queries], last.v[:, :, :queries]
        mask = None if mask is None else mask[..., :queries]
        options = dict(ft._read(calls[0].numbers))
        options.update(causal=True, align="last")
        numbers, offsets = ft._write(options), None
    else:
        q, lse = last.q, last.lse
    engine = ft._engine(numbers, last.bias, mask, last.sinks, None, offsets, last.starts, last.starts, None)
    return _Layer(engine, ft._array(q), ft._array(last.k), ft._array(last.v), lse.numpy(), output)
