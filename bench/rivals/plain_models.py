"""GPT-2 and the encoder-decoder in plain PyTorch: fewer operations than in transformers or nn.Transformer, and so faster.

Parameters have the names that Foveal gives them; `names` turns them into those of a checkpoint.
"""

import json
import math
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn


class Attention(nn.Module):
    """x + attention(norm(x)), to itself or to another sequence."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads, self.norm = heads, nn.LayerNorm(width)
        self.qkv_proj, self.o_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor, memory: torch.Tensor | None = None, causal: bool = False) -> torch.Tensor:
        batch, tokens, width = x.shape
        normed, qkv = self.norm(x), self.qkv_proj
        if memory is None:
            q, k, v = qkv(normed).split(width, dim=2)
        else:
            q = F.linear(normed, qkv.weight[:width], qkv.bias[:width])
            k, v = F.linear(memory, qkv.weight[width:], qkv.bias[width:]).split(width, dim=2)
        q, k, v = (part.view(batch, -1, self.heads, width // self.heads).transpose(1, 2) for part in (q, k, v))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return x + self.o_proj(out.transpose(1, 2).reshape(batch, tokens, width))


class Mlp(nn.Module):
    """x + down(activation(up(norm(x))))."""

    def __init__(self, width: int, hidden: int, activation):
        super().__init__()
        self.norm, self.activation = nn.LayerNorm(width), activation
        self.up_proj, self.down_proj = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down_proj(self.activation(self.up_proj(self.norm(x))))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, hidden: int, activation, causal: bool, cross: bool = False):
        super().__init__()
        self.causal, self.attention = causal, Attention(width, heads)
        self.cross = Attention(width, heads) if cross else None
        self.mlp = Mlp(width, hidden, activation)

    def forward(self, x: torch.Tensor, memory: torch.Tensor | None = None) -> torch.Tensor:
        x = self.attention(x, causal=self.causal)
        if self.cross is not None:
            x = self.cross(x, memory)
        return self.mlp(x)


class Plain(nn.Module):
    """What both have in common: a configuration, and checkpoints."""

    names: list[tuple[str, str]] = []
    transposed: tuple[str, ...] = ()

    def __init__(self, config: dict):
        super().__init__()
        self.config = config

    def theirs(self) -> dict[str, torch.Tensor]:
        """The parameters as a checkpoint has them, sharing their memory."""
        found = {}
        for name, parameter in self.named_parameters():
            for ours, theirs in self.names:
                if name.startswith(ours) or ours.startswith("."):
                    name = name.replace(ours, theirs, 1)
            found[name] = parameter.data.T if name.endswith(self.transposed) else parameter.data
        return found

    def save(self, folder: Path) -> None:
        save_file({name: values.contiguous() for name, values in self.theirs().items()}, folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps(self.config))

    def load(self, folder: Path) -> None:
        stored = load_file(folder / "model.safetensors")
        for name, values in self.theirs().items():
            values.copy_(stored[name])


class Gpt2(Plain):
    names = [
        ("tokens.", "transformer.wte."),
        ("positions.", "transformer.wpe."),
        ("layers.", "transformer.h."),
        (".attention.norm.", ".ln_1."),
        (".attention.qkv_proj.", ".attn.c_attn."),
        (".attention.o_proj.", ".attn.c_proj."),
        (".mlp.norm.", ".ln_2."),
        (".mlp.up_proj.", ".mlp.c_fc."),
        (".mlp.down_proj.", ".mlp.c_proj."),
        ("norm.", "transformer.ln_f."),
    ]
    transposed = (".c_attn.weight", ".c_proj.weight", ".c_fc.weight")

    def __init__(self, config: dict):
        super().__init__(config)
        width = config["n_embd"]
        self.tokens, self.positions = nn.Embedding(config["vocab_size"], width), nn.Embedding(config["n_positions"], width)
        block = lambda: Block(width, config["n_head"], 4 * width, nn.GELU(approximate="tanh"), causal=True)
        self.layers = nn.ModuleList(block() for _ in range(config["n_layer"]))
        self.norm = nn.LayerNorm(width)
        for parameter in self.parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        x = self.tokens(inputs) + self.positions.weight[: inputs.shape[1]]
        for block in self.layers:
            x = block(x)
        return self.norm(x) @ self.tokens.weight.T


class EncoderDecoder(Plain):
    def __init__(self, config: dict):
        super().__init__(config)
        width, heads, hidden = config["d_model"], config["num_heads"], config["ffn_dim"]
        self.source, self.target = (nn.Embedding(config[f"{side}_vocab_size"], width) for side in ("source", "target"))
        self.encoder = nn.ModuleList(Block(width, heads, hidden, nn.ReLU(), False) for _ in range(config["encoder_layers"]))
        self.decoder = nn.ModuleList(Block(width, heads, hidden, nn.ReLU(), True, True) for _ in range(config["decoder_layers"]))
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        for table in (self.source, self.target):
            nn.init.normal_(table.weight, std=width**-0.5)
        position = torch.arange(config["max_position_embeddings"]).double()[:, None]
        angles = position * 10000.0 ** (-torch.arange(0, width, 2).double() / width)
        self.register_buffer("positions", torch.stack([angles.sin(), angles.cos()], -1).flatten(1).float())

    def forward(self, source: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        scale = math.sqrt(self.config["d_model"])
        memory = scale * self.source(source) + self.positions[: source.shape[1]]
        for block in self.encoder:
            memory = block(memory)
        memory = self.encoder_norm(memory)
        x = scale * self.target(inputs) + self.positions[: inputs.shape[1]]
        for block in self.decoder:
            x = block(x, memory)
        return self.decoder_norm(x) @ self.target.weight.T


def plain_model(config: dict) -> Plain:
    return {"gpt2": Gpt2, "transformer": EncoderDecoder}[config["model_type"]](config)
