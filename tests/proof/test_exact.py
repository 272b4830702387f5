"""Exact inputs fit the output's type: for every format, in fp16 and bf16, quantized activations or not."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from warptile import formats
from warptile.contracts import Problem
from warptile.contracts.samples import neighbours, rounded, stored, widened
from warptile.kernels.triton.gemm_int8.blocks import blocks_of
from warptile.proof import checks
from warptile.proof.exact import LARGEST, SIGNIFICANT_BITS
from warptile.proof.references import Case, Wanted, build

FORMATS = list(formats.all_formats())
K, M, N = 1024, 12, 24


@cache
def case(name: str, y_dtype: str, quantized: bool) -> Case:
    block = blocks_of(Problem(name, N, K, M)).size if quantized else 0
    bits = SIGNIFICANT_BITS[y_dtype]
    return build(Wanted(formats.by_name(name), K, "exact", 3, y_dtype, 24, block, y_dtype, bits), M, N)


def weights(name: str, blocks: np.ndarray) -> np.ndarray:
    found = formats.by_name(name)
    return found.decode(blocks.reshape(-1, found.block_bytes)).reshape(N, K).astype(np.float64)


@pytest.mark.parametrize("y_dtype", ["fp16", "bf16"])
@pytest.mark.parametrize("name", FORMATS)
def test_sums_fit_the_outputs_type(name: str, y_dtype: str) -> None:
    one = case(name, y_dtype, False)
    w = weights(name, one.blocks)
    np.testing.assert_array_equal(rounded(w, y_dtype), w, "a weight must be multiplied unrounded")
    np.testing.assert_array_equal(one.want, one.x.astype(np.float64) @ w.T)
    assert (np.abs(one.x).astype(np.float64) @ np.abs(w).T / 0.25).max() <= 2**24
    assert np.abs(one.want).max() <= LARGEST[y_dtype]
    np.testing.assert_array_equal(rounded(one.want[1::2], y_dtype), one.want[1::2])
    assert (one.x != 0).any(axis=1).all(), "rows of zeros prove nothing"


@pytest.mark.parametrize("y_dtype", ["fp16", "bf16"])
@pytest.mark.parametrize("name", FORMATS)
def test_quantized_sums_do_not_overflow(name: str, y_dtype: str) -> None:
    one = case(name, y_dtype, True)
    block = blocks_of(Problem(name, N, K, M)).size
    top = np.abs(one.x.astype(np.float64)).reshape(M, -1, block).max(axis=2)
    assert set(np.unique(top)) <= {0.0, 127.0}
    assert (top == 127).any(axis=1).all()
    np.testing.assert_array_equal(one.want, np.rint(one.x.astype(np.float64)) @ weights(name, one.blocks).T)
    assert np.abs(one.want).max() <= LARGEST[y_dtype]


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("y_dtype", ["fp16", "bf16"])
@pytest.mark.parametrize("name", ["Q8_0", "Q6_K", "PTQ1_0"])
def test_one_code_off_by_one_shows(name: str, y_dtype: str, quantized: bool) -> None:
    """In a sparse row's column, where it moves a sum by a quarter at least."""
    one = case(name, y_dtype, quantized)
    w, x = weights(name, one.blocks), np.rint(one.x.astype(np.float64))
    assert checks.exact(rounded(one.want, y_dtype), one.want, y_dtype) is None
    row = 1
    column = int(np.argmax(np.abs(x[row])))
    w[5, column] += 0.25 if abs(w[5, column]) < 32 else 1.0
    finding = checks.exact(rounded(x @ w.T, y_dtype), one.want, y_dtype)
    assert finding is not None
    assert finding.check == "exact"


def test_bf16_is_rounded_to_nearest_even_and_widened_exactly() -> None:
    values = np.array([1.0, 1 + 2.0**-8, 1 + 3 * 2.0**-8, -(1 + 2.0**-7), 3.4e38, np.inf, np.nan, 0.0], np.float32)
    assert stored(values, "bf16").tolist()[:4] == [0x3F80, 0x3F80, 0x3F82, 0xBF81]
    got = rounded(values, "bf16")
    assert got[5] == np.inf
    assert np.isnan(got[6])
    bits = np.arange(0, 1 << 16, 7, dtype=np.uint16)
    finite = bits[np.isfinite(widened(bits, "bf16"))]
    np.testing.assert_array_equal(stored(widened(finite, "bf16"), "bf16"), finite)


def test_a_sum_that_is_no_number_of_its_type_may_be_either_neighbour() -> None:
    want = np.array([[2049.0, -2049.0, 2048.0, 0.0]])
    one, other = neighbours(want, "fp16")
    assert {(float(a), float(b)) for a, b in zip(one[0], other[0], strict=True)} == {
        (2048.0, 2050.0), (-2048.0, -2050.0), (2048.0, 2048.0), (0.0, 0.0)
    }  # fmt: skip
    assert checks.exact(np.array([[2050.0, -2050.0, 2048.0, 0.0]], np.float16), want, "fp16") is None
    assert checks.exact(np.array([[2050.0, -2050.0, 2050.0, 0.0]], np.float16), want, "fp16") is not None
