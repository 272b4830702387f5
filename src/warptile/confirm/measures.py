"""How far two models' predictions are apart: perplexity, divergence, choice of the next token."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Agreement:
    """Over `tokens` predicted positions of a text.

    perplexity_reference, perplexity: exp of the mean negative log likelihood, of each arm. difference: mean over
    positions of the tuned arm's negative log likelihood less the reference's, in nats, with its standard error
    (positions taken as independent). kl_mean, kl_99: Kullback-Leibler divergence of the tuned arm's distribution from
    the reference's, sum p log(p / q), in nats: mean and 99th percentile. top1: share of positions where both find the
    same token likeliest.
    """

    tokens: int
    perplexity_reference: float
    perplexity: float
    difference: float
    standard_error: float
    kl_mean: float
    kl_99: float
    top1: float


@dataclass(frozen=True)
class Compared:
    """Each predicted position of one window: f32[positions] of each measure; same: whether the choices agree."""

    reference: torch.Tensor
    tuned: torch.Tensor
    kl: torch.Tensor
    same: torch.Tensor


def compare(reference: torch.Tensor, tuned: torch.Tensor, targets: torch.Tensor) -> Compared:
    """Logits [positions, vocabulary] of both arms, and the token i64[positions] that followed each."""
    p = torch.log_softmax(reference.double(), dim=-1)
    q = torch.log_softmax(tuned.to(reference.device).double(), dim=-1)
    at = targets.to(reference.device)[:, None]
    return Compared(
        reference=-p.gather(1, at)[:, 0].cpu(),
        tuned=-q.gather(1, at)[:, 0].cpu(),
        kl=(p.exp() * (p - q)).sum(-1).clamp_min(0).cpu(),
        same=(p.argmax(-1) == q.argmax(-1)).cpu(),
    )


def agreement(windows: Sequence[Compared]) -> Agreement:
    """All windows' positions together."""
    reference, tuned, kl, same = (
        torch.cat([getattr(window, name) for window in windows]) for name in ("reference", "tuned", "kl", "same")
    )
    difference = tuned - reference
    count = len(difference)
    return Agreement(
        tokens=count,
        perplexity_reference=float(reference.double().mean().exp()),
        perplexity=float(tuned.double().mean().exp()),
        difference=float(difference.mean()),
        standard_error=float(difference.std()) / math.sqrt(count) if count > 1 else math.inf,
        kl_mean=float(kl.mean()),
        kl_99=float(kl.quantile(0.99)),
        top1=float(same.double().mean()),
    )
