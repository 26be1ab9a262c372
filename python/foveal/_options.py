"""What pickles of options call."""

from __future__ import annotations

from typing import Any

from foveal._foveal import Attention


def attention_of(options: dict[str, Any]) -> Attention:
    """The attention with these options."""
    return Attention(**options)
