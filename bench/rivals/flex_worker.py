"""PyTorch's FlexAttention, compiled, as a worker: see worker.py."""

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from torch_worker import tensor
from worker import THREADS, NotOffered, Way, serve

compiled = torch.compile(flex_attention, dynamic=False)


def ways(work: dict) -> list[Way]:
    if work["work"] != "forward" or work["mask"] != "longformer":
        raise NotOffered(f"{work['work']} with mask {work['mask']}")
    batch, heads, tokens, dim = work["shape"]
    q, k, v = (tensor(work, name, work["shape"]) for name in "qkv")
    window = work["window"]

    def near(_batch, _head, query, key):
        return (query - key).abs() <= window

    def way(size: int) -> Way:
        mask = create_block_mask(near, None, None, tokens, tokens, device="cpu", BLOCK_SIZE=size)
        return Way(f"blocks of {size}", lambda: compiled(q, k, v, block_mask=mask), lambda out: {"out": out.numpy()})

    return [way(size) for size in (64, 128, 256)]


if __name__ == "__main__":
    torch.set_num_threads(THREADS)
    serve(f"FlexAttention {torch.__version__.split('+')[0]}", ways)
