"""PyTorch's scaled_dot_product_attention as a worker: see worker.py."""

import torch
import torch.nn.functional as F

from worker import THREADS, NotOffered, Way, array, serve


def tensor(work: dict, name: str, shape: list[int], dtype: str = "<f4") -> torch.Tensor:
    # A copy, so that the memory is PyTorch's own: NumPy asks the system for huge pages, and no tensor made by PyTorch has them.
    return torch.from_numpy(array(work, name, shape, dtype)).clone()


def ways(work: dict) -> list[Way]:
    batch, heads, queries, dim = work["shape"]
    kv_heads, keys = work["kv_heads"], work["keys"]
    q = tensor(work, "q", [batch, heads, queries, dim])
    k = tensor(work, "k", [batch, kv_heads, keys, dim])
    v = tensor(work, "v", [batch, kv_heads, keys, dim])
    match work["work"]:
        case "forward" if work["mask"] == "packed":
            return padded_ways(work, q, k, v) if work["rival"] == "padded" else each_ways(work, q, k, v)
        case "forward" | "call" | "decode":
            grouped = {"enable_gqa": True} if kv_heads < heads else {}
            return [forward_way(name, q, k, v, **options, **grouped) for name, options in calls(work, queries, keys, heads)]
        case "backward":
            return [backward_way(work, q, k, v, **options) for _, options in calls(work, queries, keys, heads)]
        case "training":
            return [training_way(work, q, k, v, **options) for _, options in calls(work, queries, keys, heads)]
        case other:
            raise NotOffered(other)


def calls(work: dict, queries: int, keys: int, heads: int) -> list[tuple[str, dict]]:
    """The keyword arguments that say this mask and bias; more than one where PyTorch takes more than one form."""
    if work["bias"] != "none":
        # PyTorch takes either a mask or is_causal, so the bias of a causal work holds -inf.
        bias = tensor(work, "bias", [1, heads, queries, keys])
        if work["mask"] == "causal":
            bias.masked_fill_(~torch.ones(queries, keys, dtype=torch.bool).tril(), -torch.inf)
        return [("attn_mask, float", {"attn_mask": bias})]
    match work["mask"]:
        case "none":
            return [("plain", {})]
        case "causal":
            return [("is_causal", {"is_causal": queries > 1})]
        case "keep":
            keep = tensor(work, "keep", [1, 1, queries, keys], "u1").bool()
            added = torch.zeros(keep.shape).masked_fill_(~keep, -torch.inf)
            return [("attn_mask, bool", {"attn_mask": keep}), ("attn_mask, float", {"attn_mask": added})]
        case other:
            raise NotOffered(other)


def forward_way(name: str, q, k, v, **options) -> Way:
    # None of the inputs asks for a gradient, so nothing is recorded.
    return Way(name, lambda: F.scaled_dot_product_attention(q, k, v, **options), lambda out: {"out": out.numpy()})


def padded_ways(work: dict, *qkv: torch.Tensor) -> list[Way]:
    """All sequences in one batch as long as the longest, with a mask over what is not there."""
    lengths = torch.tensor(work["lengths"])
    inside = torch.arange(lengths.max()) < lengths[:, None]  # [sequences, longest]

    def pad(x: torch.Tensor) -> torch.Tensor:
        padded = torch.zeros(*inside.shape, x.shape[1], x.shape[3])
        padded[inside] = x[0].transpose(0, 1)
        return padded.transpose(1, 2).contiguous()

    q, k, v = map(pad, qkv)
    keep = inside[:, None, None, :]
    added = torch.zeros(keep.shape).masked_fill_(~keep, -torch.inf)

    def way(name: str, mask: torch.Tensor) -> Way:
        answers = lambda out: {"out": out.transpose(1, 2)[inside].transpose(0, 1)[None].numpy()}
        return Way(name, lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=mask), answers)

    return [way("attn_mask, bool", keep), way("attn_mask, float", added)]


def each_ways(work: dict, *qkv: torch.Tensor) -> list[Way]:
    """A call for each sequence, on views of what lies end to end or on tensors of its own."""
    views = list(zip(*(x.split(work["lengths"], 2) for x in qkv)))
    copies = [tuple(x.contiguous() for x in one) for one in views]

    def way(name: str, sequences: list) -> Way:
        run = lambda: [F.scaled_dot_product_attention(*one) for one in sequences]
        return Way(name, run, lambda outs: {"out": torch.cat(outs, 2).numpy()})

    return [way("views", views), way("copies", copies)]


def backward_way(work: dict, q, k, v, **options) -> Way:
    dout = tensor(work, "dout", list(q.shape))
    inputs = tuple(x.requires_grad_() for x in (q, k, v))
    out = F.scaled_dot_product_attention(*inputs, **options)
    return Way(
        "autograd.grad",
        lambda: torch.autograd.grad(out, inputs, dout, retain_graph=True),
        lambda grads: {name: grad.numpy() for name, grad in zip(("dq", "dk", "dv"), grads)},
    )


def training_way(work: dict, q, k, v, **options) -> Way:
    """Forward and backward."""
    dout = tensor(work, "dout", list(q.shape))
    inputs = tuple(x.requires_grad_() for x in (q, k, v))
    return Way(
        "forward and autograd.grad",
        lambda: torch.autograd.grad(F.scaled_dot_product_attention(*inputs, **options), inputs, dout),
        lambda grads: {name: grad.numpy() for name, grad in zip(("dq", "dk", "dv"), grads)},
    )


if __name__ == "__main__":
    torch.set_num_threads(THREADS)
    serve(f"PyTorch {torch.__version__.split('+')[0]}", ways)
