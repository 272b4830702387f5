"""Whole models: transformers' architectures over packed weights. Needs the extra `model`."""

from __future__ import annotations

from warptile.model.load import load

__all__ = ["load"]
