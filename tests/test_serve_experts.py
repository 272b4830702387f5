"""Grouped matmuls of a session: each token by the experts that its ids name."""

from __future__ import annotations

from collections.abc import Iterator

import gguf
import numpy as np
import pytest
from gguf.quants import dequantize, quantize

from warptile import formats
from warptile.contracts import UnusableInput
from warptile.places import Places
from warptile.serve import Session
from warptile.weights import QuantTensor

pytestmark = pytest.mark.filterwarnings("ignore::warptile.routing.UntunedWarning")
ROWS, K = 84, 256


@pytest.fixture(scope="module")
def session(software_device: str, places: Places) -> Iterator[Session]:
    with Session(software_device, places) as opened:
        yield opened


@pytest.fixture(scope="module")
def w() -> QuantTensor:
    dense = np.random.default_rng(5).standard_normal((ROWS, K), np.float32)
    return QuantTensor.from_blocks(formats.by_name("Q8_0"), quantize(dense, gguf.GGMLQuantizationType.Q8_0), (ROWS, K))


@pytest.mark.parametrize("experts", [4, 7, 1])
def test_the_same_rows_as_other_numbers_of_experts(session: Session, w: QuantTensor, experts: int) -> None:
    """Each packing is its own on the device; one left from another call would give other experts' rows."""
    rng = np.random.default_rng(experts)
    x = rng.standard_normal((9, K), np.float32)
    ids = rng.integers(0, experts, (9, 1))
    y = session.matmul_id(x, w, ids, experts=experts)
    n = ROWS // experts
    decoded = dequantize(w.blocks.reshape(ROWS, -1), gguf.GGMLQuantizationType.Q8_0).astype(np.float64)
    for t in range(len(x)):
        of_expert = decoded[int(ids[t, 0]) * n :][:n]
        # Operands rounded to fp16 by 2^-11 each, K fp32 additions.
        bound = (2.0**-10 + 2.0**-22 + (K + 1) * 2.0**-24) * (np.abs(of_expert) @ np.abs(x[t]))
        assert (np.abs(y[t, 0] - of_expert @ x[t].astype(np.float64)) <= bound).all()


def test_no_tokens_no_work(session: Session, w: QuantTensor) -> None:
    x, ids = np.zeros((0, K), np.float32), np.zeros((0, 2), np.int64)
    assert session.matmul_id(x, w, ids, experts=4).shape == (0, 2, 21)


@pytest.mark.parametrize("bad", [-1, 4, 1 << 32])
def test_an_id_of_no_expert_is_refused_by_name(session: Session, w: QuantTensor, bad: int) -> None:
    ids = np.array([[0, 1], [2, bad]])
    with pytest.raises(UnusableInput, match=rf"ids\[1, 1\] is {bad}, there are experts 0 to 3"):
        session.matmul_id(np.ones((2, K), np.float32), w, ids, experts=4)
