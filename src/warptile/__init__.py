"""warptile: finds, proves and serves the fastest quantized-matmul tile for a GGUF model on a GPU."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warptile import formats
    from warptile.model.load import load
    from warptile.serve import Session, matmul
    from warptile.serve_experts import matmul_id
    from warptile.tune import tune
    from warptile.weights import QuantTensor

__version__ = "0.1.0"
__all__ = ["QuantTensor", "Session", "formats", "load", "matmul", "matmul_id", "tune"]

_HOMES = {
    "QuantTensor": "weights",
    "Session": "serve",
    "load": "model.load",
    "matmul": "serve",
    "matmul_id": "serve_experts",
}


def __getattr__(name: str) -> Any:
    """The public face, imported on first use so that `import warptile` loads no driver."""
    if name in ("formats", "tune"):
        return importlib.import_module(f"warptile.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(f"warptile.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'warptile' has no attribute {name!r}")
