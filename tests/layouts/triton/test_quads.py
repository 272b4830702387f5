"""The quad arrangement on the host: nothing of a file is lost, nothing grows, and the device's bit map agrees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.blocks import random_blocks

from warptile import formats
from warptile.contracts import UnusableInput
from warptile.layouts import pack, pack_repeated, slice_bytes, unpack
from warptile.layouts.triton import MOST_PLANES, arrangement, pack_rows, plane_views
from warptile.layouts.triton.arrangement import unit_exponents
from warptile.layouts.triton.bitmap import plane_maps

FORMATS = list(formats.all_formats())
PERMUTING = [name for name, found in formats.all_formats().items() if found.permutes]
GRIDS = [name for name in FORMATS if name not in PERMUTING]


@pytest.mark.parametrize("name", FORMATS)
@given(rows=st.integers(1, 40), blocks=st.integers(1, 9), seed=st.integers(0, 1 << 30))
@settings(max_examples=8, deadline=None)
def test_every_byte_pattern_survives(name: str, rows: int, blocks: int, seed: int) -> None:
    found = formats.by_name(name)
    k = max(32, found.block_size) * blocks
    data = random_blocks(found, rows * k // found.block_size, seed).reshape(rows, -1)
    packed = pack(found, data, rows, k, arrangement="quads")
    assert np.array_equal(unpack(packed), data)


@pytest.mark.parametrize("arrangement_", ["rows", "quads"])
@pytest.mark.parametrize("name", ["Q4_K", "Q6_K", "Q8_0", "PTQ1_0"])
def test_repeated_rows_are_packed_as_if_they_were_written_out(name: str, arrangement_: str) -> None:
    """In one slice and in slices of 5 rows, which do not divide the period of 7."""
    found = formats.by_name(name)
    k, n = max(32, found.block_size), 33
    data = random_blocks(found, 7 * k // found.block_size, 3).reshape(7, -1)
    written = np.resize(data, (n, data.shape[1]))
    for most in (None, slice_bytes(found, 5, k, arrangement_)):
        repeated = pack_repeated(found, data, n, k, most, arrangement_)
        assert np.array_equal(unpack(repeated), written)
        for one, other in zip(repeated.slices, pack(found, written, n, k, most, arrangement_).slices, strict=True):
            assert np.array_equal(one.words, other.words)
            assert (one.row0, one.rows, one.planes) == (other.row0, other.rows, other.planes)


@pytest.mark.parametrize("name", PERMUTING)
def test_packed_is_at_most_four_percent_larger(name: str) -> None:
    found = formats.by_name(name)
    n, k = 576, 1536
    assert slice_bytes(found, n, k, "quads") <= 1.04 * n * found.row_bytes(k)
    assert len(arrangement(found.layout, k).planes) - 1 <= MOST_PLANES


@pytest.mark.parametrize("name", GRIDS)
def test_grid_formats_are_unfolded_to_whole_codes_and_have_no_map(name: str) -> None:
    """3 bits an element (4 for IQ3), a nibble a group, fp16 a superblock."""
    found = formats.by_name(name)
    n, k = 576, 1536
    assert slice_bytes(found, n, k, "quads") <= (4.35 if name.startswith("IQ3") else 3.45) / 8 * n * k
    with pytest.raises(UnusableInput, match="permutation"):
        plane_maps(found, 256)


@pytest.mark.parametrize("name", PERMUTING)
@pytest.mark.parametrize("blocks", [1, 2, 3, 8])
def test_the_device_map_is_the_hosts_packing(name: str, blocks: int) -> None:
    """A device follows the map; followed here in numpy it must give the words that the host packs."""
    found = formats.by_name(name)
    k, rows = max(32, found.block_size) * blocks, 3
    data = random_blocks(found, rows * k // found.block_size, blocks).reshape(rows, -1)
    words, _ = pack_rows(found, data, k)
    arranged = arrangement(found.layout, k)
    for view, plane, moved in zip(
        plane_views(arranged, words, rows), arranged.planes, plane_maps(found, k), strict=False
    ):
        numbers = data.view(f"<u{moved.unit}").reshape(rows, k // moved.span, -1).astype(np.uint64)
        value = np.zeros((rows, k // moved.span, len(moved.at)), np.uint64)
        for j, parts in enumerate(moved.parts):
            for mask, more in parts:
                turn = (moved.turns[:, j] + more).astype(np.uint64) % np.uint64(32)
                wide = numbers[..., moved.at[:, j]] * (np.uint64(1) << turn)
                kept = mask if moved.masks is None else moved.masks[:, j].astype(np.uint64)
                value |= (wide | wide >> np.uint64(32)) & kept
        value ^= moved.flips
        got = value.reshape(rows, -1, plane.per).swapaxes(0, 1).astype(np.uint64)
        assert np.array_equal(got, view.astype(np.uint64)), plane


def test_a_unit_takes_the_rows_scales_into_the_upper_range_of_fp16() -> None:
    largest = np.array([2.0**-24, 1e-5, 0.013, 1.0, 3.7, 65504.0 * 63], np.float32)
    units = np.exp2(unit_exponents(largest).astype(np.float64) - 127)
    scaled = largest * 2.0**24 / units
    assert ((scaled >= 2**14) & (scaled < 2**15)).all()
    assert list(unit_exponents(np.array([0.0, np.inf, np.nan], np.float32))) == [127, 127, 127]


def test_a_row_that_is_not_whole_blocks_is_refused() -> None:
    with pytest.raises(UnusableInput, match="K = 128"):
        arrangement(formats.by_name("Q4_K").layout, 128)
    with pytest.raises(UnusableInput, match="arrangement 'columns'"):
        slice_bytes(formats.by_name("Q4_0"), 4, 64, "columns")
