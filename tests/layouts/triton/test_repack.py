"""Packing on the device: what it leaves is what the host packs, to the bit, or a served weight is another weight."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.blocks import random_blocks

from warptile import formats
from warptile.layouts.triton import pack_rows

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

PERMUTING = [name for name, found in formats.all_formats().items() if found.permutes]


def packed(format: Any, data: Any, n: int, k: int) -> Any:
    """u32 words of file bytes u8[n * row bytes], an array or a tensor, packed by the device's code."""
    from warptile.layouts.triton.repack import repack

    source = data if isinstance(data, torch.Tensor) else torch.from_numpy(data.reshape(-1))
    return repack(format, source, n, k).numpy().view(np.uint32)


@pytest.mark.parametrize("name", PERMUTING)
def test_every_format_is_packed_as_on_the_host(name: str) -> None:
    """Bytes of any pattern; rows that do not fill a program, and a k whose last turn of the loop is cut short."""
    found = formats.by_name(name)
    n, k = 17, 3 * max(32, found.block_size)
    data = random_blocks(found, n * k // found.block_size, 7).reshape(n, -1)
    wanted, _ = pack_rows(found, data, k)
    assert np.array_equal(packed(found, data, n, k), wanted)


@pytest.mark.parametrize("name", ["Q4_K", "Q8_0"])
def test_rows_of_many_turns(name: str) -> None:
    found = formats.by_name(name)
    n, k = 3, 4096
    data = random_blocks(found, n * k // found.block_size, 1).reshape(n, -1)
    wanted, _ = pack_rows(found, data, k)
    assert np.array_equal(packed(found, data, n, k), wanted)


@pytest.mark.parametrize("name", ["Q4_K", "Q4_1", "Q2_K"])
def test_a_minimum_that_is_no_number_gives_the_unit_the_host_gives(name: str) -> None:
    """fp16 NaN as minimum, usual scales: the maximum of the two must not drop it."""
    found = formats.by_name(name)
    k = max(32, found.block_size)
    data = np.zeros((2, found.block_bytes), np.uint8)
    at = found.block_bytes - 4 if name == "Q2_K" else 0
    data[:, at : at + 4] = np.array([0x3C00, 0x7E01], "<u2").view(np.uint8)
    data[:, 4 if name == "Q4_K" else 8] = 0x11
    data = np.repeat(data, k // found.block_size, axis=0)
    wanted, starts = pack_rows(found, data.reshape(2, -1), k)
    assert wanted[starts[-1]] & 0xFF == 127
    assert np.array_equal(packed(found, data, 2, k), wanted)


def test_bytes_at_an_odd_address_are_packed_too() -> None:
    """A slice of a larger buffer need not start where two bytes can be read at once."""
    found = formats.by_name("Q4_0")
    data = random_blocks(found, 3, 5).reshape(3, -1)
    buffer = torch.empty(data.size + 1, dtype=torch.uint8)
    part = buffer[1:] if buffer.data_ptr() % 2 == 0 else buffer[: data.size]
    part.copy_(torch.from_numpy(data.reshape(-1)))
    wanted, _ = pack_rows(found, data, 32)
    assert np.array_equal(packed(found, part, 3, 32), wanted)
