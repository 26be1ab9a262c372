"""The functions of the package ``flash_attn`` (2.8) on the CPU, with its signatures and meanings.

Tensors are [batch, tokens, heads, dim] in float16, bfloat16, or float32, which theirs lacks. Causal masks stand at the bottom right
where there are not as many queries as keys, and a window of -1 is open.

::

    import foveal.flash_attn
    foveal.flash_attn.install()          # only where the real one is absent
    from flash_attn import flash_attn_func
"""

from __future__ import annotations

from foveal.flash_attn import bert_padding
from foveal.flash_attn.interface import (
    flash_attn_func,
    flash_attn_kvpacked_func,
    flash_attn_qkvpacked_func,
    flash_attn_varlen_func,
    flash_attn_varlen_kvpacked_func,
    flash_attn_varlen_qkvpacked_func,
    flash_attn_with_kvcache,
)

__all__ = [
    "bert_padding",
    "flash_attn_func",
    "flash_attn_kvpacked_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_varlen_kvpacked_func",
    "flash_attn_varlen_qkvpacked_func",
    "flash_attn_with_kvcache",
    "install",
]

#: What ``flash_attn.__version__`` says where this stands in for it.
VERSION = "2.8.3+foveal"


def install() -> bool:
    """Lets ``import flash_attn`` find these functions. Where the real package is installed, nothing happens: False."""
    import importlib.machinery
    import importlib.util
    import sys
    import types

    before = sys.modules.get("flash_attn")
    if before is not None:
        return getattr(before, "__version__", None) == VERSION
    if importlib.util.find_spec("flash_attn") is not None:
        return False

    def module(name: str, **contents: object) -> types.ModuleType:
        made = types.ModuleType(name, __doc__)
        made.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=name == "flash_attn")
        made.__dict__.update(contents)
        sys.modules[name] = made
        return made

    functions = {name: globals()[name] for name in __all__ if name.startswith("flash_attn")}
    padding = {name: getattr(bert_padding, name) for name in bert_padding.__all__}
    inner = module("flash_attn.flash_attn_interface", **functions)
    pads = module("flash_attn.bert_padding", **padding)
    package = module("flash_attn", **functions, __version__=VERSION, flash_attn_interface=inner, bert_padding=pads)
    package.__path__ = []  # type: ignore[attr-defined]
    return True
