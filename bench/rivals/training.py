"""One step of training in PyTorch: forward, backward, clipping, AdamW. Used by the worker and, in float64, by what checks it."""

import json
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F

from plain_models import plain_model

CHECKED = 5  # steps whose losses are the answer, as in crates/models/benches/models/works.rs


class Training:
    """As foveal_models' default plan, with a constant learning rate: the same batch again and again."""

    def __init__(self, work: dict, dtype: torch.dtype = torch.float32, compiled: bool = False, **options):
        self.folder, self.options = Path(work["model"]), options
        self.model = plain_model(json.loads((self.folder / "config.json").read_text())).to(dtype)
        self.inputs = [torch.tensor(work[name]) for name in ("source", "inputs") if name in work]
        self.targets = torch.tensor(work["targets"]).flatten()
        self.loss: Callable[[], torch.Tensor] = torch.compile(self.eager_loss) if compiled else self.eager_loss
        self.reset()

    def reset(self) -> None:
        """Back to the first step."""
        self.model.load(self.folder)
        matrices = [p for p in self.model.parameters() if p.ndim >= 2]
        vectors = [p for p in self.model.parameters() if p.ndim < 2]
        groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
        self.optimiser = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99), **self.options)

    def eager_loss(self) -> torch.Tensor:
        return F.cross_entropy(self.model(*self.inputs).flatten(0, 1), self.targets)

    def step(self) -> torch.Tensor:
        loss = self.loss()
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()
        return loss.detach()

    def losses(self) -> torch.Tensor:
        self.reset()
        return torch.stack([self.step() for _ in range(CHECKED)])
