"""What a user sees when a format is looked up, and the sizes that files are cut by."""

from __future__ import annotations

import numpy as np
import pytest
from support.blocks import random_blocks

from warptile import formats
from warptile.contracts.errors import UnusableInput
from warptile.formats import Format

# name: (GGUF id, elements a block, bytes a block), from the GGUF specification and ggml's block structures.
SIZES = {
    "Q4_0": (2, 32, 18),
    "Q4_1": (3, 32, 20),
    "Q5_0": (6, 32, 22),
    "Q5_1": (7, 32, 24),
    "Q8_0": (8, 32, 34),
    "Q2_K": (10, 256, 84),
    "Q3_K": (11, 256, 110),
    "Q4_K": (12, 256, 144),
    "Q5_K": (13, 256, 176),
    "Q6_K": (14, 256, 210),
    "IQ2_XXS": (16, 256, 66),
    "IQ2_XS": (17, 256, 74),
    "IQ3_XXS": (18, 256, 98),
    "IQ1_S": (19, 256, 50),
    "IQ4_NL": (20, 32, 18),
    "IQ3_S": (21, 256, 110),
    "IQ2_S": (22, 256, 82),
    "IQ4_XS": (23, 256, 136),
    "IQ1_M": (29, 256, 56),
    "TQ1_0": (34, 256, 54),
    "TQ2_0": (35, 256, 66),
    "MXFP4": (39, 32, 17),
    "NVFP4": (40, 64, 36),
    "Q1_0": (41, 128, 18),
    "Q2_0": (42, 64, 18),
    "PQ2_0": (142, 128, 34),
    "PTQ1_0": (143, 128, 28),
}


def test_every_format_is_found_with_the_size_its_files_have() -> None:
    assert {f.name: (f.gguf_id, f.block_size, f.block_bytes) for f in formats.all_formats().values()} == SIZES


@pytest.mark.parametrize("format", formats.all_formats().values(), ids=lambda f: f.name)
def test_lookups_and_layout_agree(format: Format) -> None:
    assert formats.by_name(format.name) is format
    assert formats.by_gguf_id(format.gguf_id) is format
    assert format.layout.block == format.block_size
    assert format.bits_per_weight == pytest.approx(8 * format.block_bytes / format.block_size)


def test_unknown_names_and_ids_list_what_exists() -> None:
    with pytest.raises(UnusableInput, match=r"Q4_KM.*Q4_0.*PTQ1_0"):
        formats.by_name("Q4_KM")
    with pytest.raises(UnusableInput, match=r"999.*12 Q4_K"):
        formats.by_gguf_id(999)


@pytest.mark.parametrize("format", formats.all_formats().values(), ids=lambda f: f.name)
def test_rows_that_are_not_whole_blocks_are_refused(format: Format) -> None:
    assert format.row_bytes(3 * format.block_size) == 3 * format.block_bytes
    for k in (0, -format.block_size, format.block_size - 1, format.block_size + 16):
        with pytest.raises(UnusableInput, match=f"{format.name}.*K = {k}.*{format.block_size}"):
            format.row_bytes(k)


def test_decode_refuses_blocks_of_another_size() -> None:
    q4_0 = formats.by_name("Q4_0")
    with pytest.raises(UnusableInput, match=r"Q4_0 blocks are u8\[n, 18\]"):
        q4_0.decode(random_blocks(formats.by_name("Q4_1"), 3))
    with pytest.raises(UnusableInput, match="int8"):
        q4_0.decode(np.zeros((1, 18), dtype=np.int8))  # type: ignore[arg-type]
