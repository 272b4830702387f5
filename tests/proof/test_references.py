"""References are right, shared between tiles, and bounded."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from warptile import formats
from warptile.contracts import UnusableInput
from warptile.layouts import unpack
from warptile.proof.references import ReferenceCache, Wanted, build

FMT = formats.by_name("Q5_0")
RANDOM = Wanted(FMT, 96, "random", 7)


def weights(blocks: np.ndarray) -> np.ndarray:
    return FMT.decode(blocks.reshape(-1, FMT.block_bytes)).reshape(len(blocks), -1).astype(np.float64)


def test_want_is_the_float64_product_of_the_decoded_weights() -> None:
    case = ReferenceCache().case(RANDOM, 5, 130)
    expected = np.einsum("ik,jk->ij", case.x.astype(np.float64), weights(case.blocks))
    assert case.want.shape == (5, 130)
    products = np.abs(case.x.astype(np.float64)) @ np.abs(weights(case.blocks)).T
    assert (np.abs(case.want - expected) <= 96 * 2.0**-52 * products).all()
    assert case.sums is not None
    assert (case.sums.products >= products).all()
    assert (case.sums.products <= products * 1.0001).all()
    assert (case.sums.terms >= products).all(), "Q5_0 subtracts an offset, so its terms exceed the weight"


def test_a_larger_case_starts_with_the_smaller_one() -> None:
    cache = ReferenceCache()
    small = cache.case(RANDOM, 3, 10)
    large = cache.case(RANDOM, 100, 200)
    assert (large.x[:3] == small.x).all()
    assert (large.blocks[:10] == small.blocks).all()
    again = cache.case(RANDOM, 3, 10)
    assert np.shares_memory(again.want, large.want), "a smaller shape must not compute a reference of its own"


def test_seeds_differ() -> None:
    cache = ReferenceCache()
    other = cache.case(dataclasses.replace(RANDOM, seed=8), 3, 10)
    assert (other.blocks != cache.case(RANDOM, 3, 10).blocks).any()


def test_the_cache_stays_within_its_bytes() -> None:
    cache = ReferenceCache(max_bytes=300_000)
    for k in range(32, 32 * 16, 32):
        wanted = dataclasses.replace(RANDOM, k=k)
        cache.packed(wanted, cache.case(wanted, 64, 64))
        assert cache.nbytes <= 300_000


def test_packed_weights_are_the_blocks_in_slices_of_the_rows_asked() -> None:
    cache = ReferenceCache()
    case = cache.case(RANDOM, 1, 33)
    packed = cache.packed(RANDOM, case, 16)
    assert [s.rows for s in packed.slices] == [16, 16, 1]
    assert (unpack(packed) == case.blocks).all()
    assert cache.packed(RANDOM, case, 16) is packed
    assert len(cache.packed(RANDOM, case).slices) == 1


def test_a_whole_problem_repeats_its_rows_and_is_not_kept_where_it_is_large() -> None:
    cache = ReferenceCache(max_bytes=500_000)
    case = cache.case(RANDOM, 1, 61)
    packed = cache.whole(RANDOM, case, 200, 1 << 20)
    assert (unpack(packed) == case.blocks[np.arange(200) % 61]).all()
    assert cache.whole(RANDOM, case, 200, 1 << 20) is packed
    held = cache.nbytes
    assert cache.whole(RANDOM, case, 5000, 1 << 20).nbytes > 250_000
    assert cache.nbytes == held


@pytest.mark.parametrize("bits", [24, 11])
def test_every_partial_sum_of_an_exact_case_is_representable(bits: int) -> None:
    wanted = Wanted(formats.by_name("Q6_K"), 2048, "exact", 1, exact_bits=bits)
    case = ReferenceCache().case(wanted, 40, 40)
    w = np.abs(wanted.fmt.decode(case.blocks.reshape(-1, wanted.fmt.block_bytes)).reshape(40, -1).astype(np.float64))
    assert (np.abs(case.x).astype(np.float64) @ w.T / 0.25 <= 2**bits).all()
    assert (case.want / 0.25 == np.round(case.want / 0.25)).all()
    assert (case.x != 0).any(axis=1).mean() > 0.9, "rows of zeros prove nothing"


def test_real_weights_with_nan_are_refused() -> None:
    blocks = np.full((4, FMT.row_bytes(96)), 0xFF, np.uint8)
    with pytest.raises(UnusableInput, match="Inf or NaN"):
        ReferenceCache().case(dataclasses.replace(RANDOM, kind="real"), 2, 4, blocks)


def test_exact_activations_quantize_to_known_codes() -> None:
    """Scale 1 in every block, nothing near halfway, and whole numbers whose partial sums are representable."""
    wanted = Wanted(formats.by_name("Q6_K"), 8192, "exact", 1, x_block=32)
    case = build(wanted, 9, 70)
    blocks = case.x.reshape(9, -1, 32)
    top = np.abs(blocks).max(axis=2)
    assert set(np.unique(top)) == {0.0, 127.0}
    assert (top == 127).any(axis=1).all()
    codes = np.rint(case.x)
    assert np.abs(case.x - codes).max() == 0.25
    w = formats.by_name("Q6_K").decode(case.blocks.reshape(-1, 210)).reshape(70, 8192).astype(np.float64)
    np.testing.assert_array_equal(case.want, codes.astype(np.float64) @ w.T)
    assert (np.abs(codes).astype(np.float64) @ np.abs(w).T).max() <= 2.0**24 / 4
