"""PyTorch's training as a worker: see worker.py."""

import torch

from training import Training
from worker import THREADS, NotOffered, Way, serve


def ways(work: dict) -> list[Way]:
    if not work["work"].startswith("train"):
        raise NotOffered(work["work"])
    return [
        way("eager, fused AdamW", Training(work, fused=True)),
        way("eager, foreach AdamW", Training(work, foreach=True)),
        way("torch.compile, fused AdamW", Training(work, compiled=True, fused=True)),
    ]


def way(name: str, training: Training) -> Way:
    return Way(name, training.step, lambda _: {"losses": training.losses().numpy()})


if __name__ == "__main__":
    torch.set_num_threads(THREADS)
    serve(f"PyTorch {torch.__version__.split('+')[0]}", ways)
