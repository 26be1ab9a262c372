"""PyTorch's worker with foveal in the place of its attention: see torch_worker.py."""

import torch
import torch.nn.functional as F

import torch_worker
from worker import THREADS, serve

try:
    import foveal.torch
except ImportError as error:
    raise SystemExit(f"{error}; build the wheel with `make python` and install it here: pip install out/wheels/foveal-*.whl") from None

if __name__ == "__main__":
    torch.set_num_threads(THREADS)
    F.scaled_dot_product_attention = foveal.torch.scaled_dot_product_attention
    serve(f"foveal {foveal.__version__}", torch_worker.ways)
