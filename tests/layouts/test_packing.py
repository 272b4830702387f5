"""Packing: nothing is lost, planes lie where kernels look for them, slices fit devices, memory stays bounded."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from support.blocks import random_blocks

from warptile import formats
from warptile.contracts.errors import UnusableInput
from warptile.formats import Format
from warptile.layouts import BitPlanes, PackedWeights, pack, pack_slices, unpack
from warptile.layouts.layout import Layout

ALL = list(formats.all_formats().values())
# (n, k) of matmuls in SmolLM2-135M, gemma-3-270m, Llama-8B; k is rounded up to whole blocks where a format needs it.
REAL_SHAPES = [
    (576, 576),
    (192, 576),
    (1536, 576),
    (576, 1536),
    (262144, 640),
    (4096, 4096),
    (1024, 4096),
    (4096, 14336),
]
MOST = 1.04
# Grid formats are unfolded: a code of 3 bits (4 for IQ3) an element, a nibble a group, fp16 a superblock.
UNFOLDED_BITS = {name: 4.32 if name.startswith("IQ3") else 3.45 for name in (f.name for f in ALL if not f.permutes)}


def packed_random(format: Format, n: int, k: int, max_bytes: int | None = None) -> tuple[np.ndarray, PackedWeights]:
    blocks = random_blocks(format, n * k // format.block_size).reshape(n, -1)
    return blocks, pack(format, blocks, n, k, max_bytes)


@pytest.mark.parametrize("format", ALL, ids=lambda f: f.name)
@pytest.mark.parametrize(("n", "blocks_a_row"), [(1, 1), (3, 2), (37, 5), (64, 3)])
def test_unpacking_gives_back_every_byte(format: Format, n: int, blocks_a_row: int) -> None:
    blocks, packed = packed_random(format, n, blocks_a_row * format.block_size)
    assert np.array_equal(unpack(packed), blocks)


@pytest.mark.parametrize("format", ALL, ids=lambda f: f.name)
def test_many_row_tiles_give_back_every_byte(format: Format) -> None:
    blocks, packed = packed_random(format, 531, 2048)
    assert np.array_equal(unpack(packed), blocks)


@pytest.mark.parametrize("format", ALL, ids=lambda f: f.name)
@pytest.mark.parametrize(("n", "k"), REAL_SHAPES)
def test_size_is_at_most_four_percent_above_the_file(format: Format, n: int, k: int) -> None:
    k = -(-k // format.block_size) * format.block_size
    starts, words = format.layout.offsets(n, k)
    most = UNFOLDED_BITS[format.name] / 8 * n * k if format.name in UNFOLDED_BITS else MOST * n * format.row_bytes(k)
    assert 4 * words <= most
    assert all(start % 4 == 0 for start in starts)


@pytest.mark.parametrize("format", ALL, ids=lambda f: f.name)
def test_slices_fit_cover_all_rows_and_lose_nothing(format: Format) -> None:
    n, k = 300, 2 * format.block_size
    whole = format.layout.offsets(n, k)[1] * 4
    blocks, packed = packed_random(format, n, k, max_bytes=whole // 3)
    assert len(packed.slices) > 2
    assert all(s.words.nbytes <= whole // 3 for s in packed.slices)
    assert [s.row0 for s in packed.slices] == np.cumsum([0, *[s.rows for s in packed.slices]])[:-1].tolist()
    assert sum(s.rows for s in packed.slices) == n
    assert all(s.rows % 64 == 0 for s in packed.slices[:-1])
    assert packed.nbytes == sum(s.words.nbytes for s in packed.slices)
    assert np.array_equal(unpack(packed), blocks)


def test_a_row_that_fits_no_slice_is_refused() -> None:
    with pytest.raises(UnusableInput, match="one packed row of k = 512 exceeds the device's buffer limit of 64"):
        packed_random(formats.by_name("Q4_K"), 4, 512, max_bytes=64)


def test_slices_of_fewer_rows_than_the_usual_step() -> None:
    format = formats.by_name("Q8_0")
    limit = format.layout.offsets(5, 4096)[1] * 4
    blocks, packed = packed_random(format, 12, 4096, max_bytes=limit)
    assert [s.rows for s in packed.slices] == [5, 5, 2]
    assert np.array_equal(unpack(packed), blocks)


def test_bytes_that_do_not_make_up_the_weight_are_refused() -> None:
    format = formats.by_name("Q4_0")
    blocks = random_blocks(format, 8)
    with pytest.raises(UnusableInput, match="Q4_0 weight n = 3, k = 64 is 108 bytes; got 144"):
        pack(format, blocks, 3, 64)
    with pytest.raises(UnusableInput, match="K = 48"):
        pack(format, blocks, 3, 48)
    with pytest.raises(UnusableInput, match="n = 0"):
        pack(format, blocks, 0, 64)
    with pytest.raises(UnusableInput, match="K = 48"):
        format.layout.offsets(3, 48)


@pytest.mark.parametrize("layout", {f.layout.name: f.layout for f in ALL}.values(), ids=lambda la: la.name)
def test_a_layout_name_means_one_decoder(layout: Layout) -> None:
    assert {f.layout for f in ALL if f.layout.name == layout.name} == {layout}
    assert {f.layout.glsl() for f in ALL if f.layout.name == layout.name} == {layout.glsl()}


@pytest.mark.parametrize("format", [f for f in ALL if isinstance(f.layout.codes, BitPlanes)], ids=lambda f: f.name)
def test_bit_planes_lie_where_the_architecture_says(format: Format) -> None:
    n, k = 7, 2 * max(format.block_size, 32)
    blocks, packed = packed_random(format, n, k)
    codes = format.split(blocks.reshape(-1, format.block_bytes)).codes.reshape(n, k)
    assert isinstance(format.layout.codes, BitPlanes)
    piece = packed.slices[0]
    low = 0
    for plane, b in enumerate(format.layout.codes.widths):
        for row in (0, 3, n - 1):
            for element in range(k):
                chunk, inside = divmod(element, 32)
                quad, byte = divmod(inside, 4)
                word, step = divmod(quad, 8 // b)
                at = piece.planes[plane] + (chunk * b + word) * n + row
                got = int(piece.words[at]) >> (b * step + 8 * byte) & ((1 << b) - 1)
                assert got == int(codes[row, element]) >> low & ((1 << b) - 1)
        low += b


def test_trit_planes_are_the_files_words() -> None:
    format = formats.by_name("PTQ1_0")
    blocks, packed = packed_random(format, 5, 256)
    piece = packed.slices[0]
    words = piece.words[: 2 * 7 * 5].reshape(2, 7, 5)
    assert np.array_equal(words.transpose(2, 0, 1).reshape(5, 14), blocks.view("<u4"))


def test_packing_holds_the_result_and_little_more() -> None:
    format = formats.by_name("Q4_K")
    n, k = 8192, 8192
    blocks = np.zeros((n, format.row_bytes(k)), dtype=np.uint8)
    tracemalloc.start()
    largest = 0
    for piece in pack_slices(format, blocks, n, k, max_bytes=8 << 20):
        largest = max(largest, piece.words.nbytes)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # One slice, the next being made, and one tile's temporaries (2^18 elements, a few bytes each).
    assert peak < 2 * largest + (8 << 20)
