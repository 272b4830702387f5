"""Several matmuls in one submission must give what each gives alone, and quantize shared activations once."""

from __future__ import annotations

import numpy as np
import pytest
from support.models import smollm2

from warptile import QuantTensor, Session
from warptile.contracts import Problem
from warptile.kernels import by_name
from warptile.places import Places
from warptile.routing import Route
from warptile.search import rank_all


@pytest.mark.filterwarnings("ignore::warptile.routing.UntunedWarning")
def test_together_equals_alone_and_activations_are_quantized_once(
    software_device: str, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"blk.0.attn_{part}.weight" for part in "qkv"]
    weights = [QuantTensor.from_gguf(smollm2(), name) for name in names]
    x = np.random.default_rng(3).standard_normal((5, 576), np.float32)
    with Session(software_device, places) as session:
        kernel = by_name("mul_mmq")

        def quantizing(problem: Problem, *_: object) -> Route:
            (best, *_) = rank_all(problem, session.runtime.limits(), [kernel]).candidates
            return Route(kernel, best.tile, "forced")

        monkeypatch.setattr("warptile.serve.route", quantizing)
        alone = [session.matmul(x, w) for w in weights]
        timed: list[object] = []
        together = session.matmuls(x, [session.place(w) for w in weights], timings=timed)
    for one, other in zip(alone, together, strict=True):
        assert np.array_equal(one, other)
    assert len(timed) == 4, "one launch quantizes x, three multiply"
