"""Drawn weights are sane for every format there is, and exact ones are exact."""

from __future__ import annotations

import numpy as np
import pytest

from warptile import formats
from warptile.formats import Format
from warptile.proof.weights import EXACT_GRANULE, exact_blocks, random_blocks, terms

FORMATS = list(formats.all_formats().values())


@pytest.mark.parametrize("fmt", FORMATS, ids=lambda f: f.name)
def test_random_weights_are_finite_and_the_size_of_a_models(fmt: Format) -> None:
    values = fmt.decode(random_blocks(fmt, 2000, np.random.default_rng(1)))
    assert np.isfinite(values).all()
    rms = np.sqrt(np.square(values.astype(np.float64)).mean())
    assert 2.0**-10 < rms < 2.0**2
    assert (values > 0).any()
    assert (values < 0).any()


@pytest.mark.parametrize("fmt", FORMATS, ids=lambda f: f.name)
def test_random_scales_hold_zero_subnormal_and_both_signs(fmt: Format) -> None:
    d = fmt.split(random_blocks(fmt, 2000, np.random.default_rng(1))).scales.get("d")
    if d is None:
        pytest.skip("no fp16 scale")
    subnormal = (d & 0x7C00 == 0) & (d & 0x3FF != 0)
    assert subnormal.any()
    assert (d & 0x7FFF == 0).any()
    assert (d >> 15).any()
    assert not (d >> 15).all()


@pytest.mark.parametrize("fmt", FORMATS, ids=lambda f: f.name)
def test_exact_weights_are_small_multiples_of_the_granule(fmt: Format) -> None:
    blocks = exact_blocks(fmt, 500, np.random.default_rng(2))
    w, amplitude = terms(fmt, blocks)
    for values in (w, amplitude):
        assert (values / EXACT_GRANULE == np.round(values / EXACT_GRANULE)).all()
    assert (w == w.astype(np.float16)).all()
    assert np.unique(w).size > 4


@pytest.mark.parametrize("fmt", FORMATS, ids=lambda f: f.name)
def test_terms_are_the_decode_and_at_least_its_size(fmt: Format) -> None:
    blocks = random_blocks(fmt, 300, np.random.default_rng(3))
    w, amplitude = terms(fmt, blocks)
    assert (w == fmt.decode(blocks)).all()
    # A fp32 decode rounds once, so |w| may pass its terms by one unit roundoff.
    assert (amplitude * (1 + 2.0**-24) >= np.abs(w)).all()


def test_terms_of_a_q4_1_block_by_hand() -> None:
    """d = 2, m = -5, codes 0..15 twice: w = 2q - 5, A = 2q + 5."""
    fmt = formats.by_name("Q4_1")
    head = np.array([2.0, -5.0], "<f2").view(np.uint8)
    nibbles = np.arange(16, dtype=np.uint8) * 17
    w, amplitude = terms(fmt, np.concatenate([head, nibbles])[None])
    codes = np.tile(np.arange(16.0), 2)
    assert (w[0] == 2 * codes - 5).all()
    assert (amplitude[0] == 2 * codes + 5).all()
