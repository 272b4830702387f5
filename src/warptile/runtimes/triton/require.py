"""torch and Triton, imported when first needed."""

from __future__ import annotations

from typing import Any

from warptile.contracts.errors import MissingExtra


def require_torch() -> Any:
    """The torch module. Raises MissingExtra."""
    try:
        import torch
    except ImportError:
        raise MissingExtra("a CUDA or ROCm device", "torch") from None
    return torch


def require_triton() -> Any:
    """The triton module. Raises MissingExtra."""
    try:
        import triton
    except ImportError:
        raise MissingExtra("compiling a Triton kernel", "torch") from None
    return triton
