"""A model's step on a card: what lies between the packed matmuls in a few launches."""

from __future__ import annotations

from warptile.model.step.step import Step

__all__ = ["Step"]
