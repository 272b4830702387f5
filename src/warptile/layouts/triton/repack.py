"""Packing on the device: file bytes in, quad words out, at the speed of its memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from warptile.layouts.triton.arrangement import MOST_PLANES, ROW_GRANULE, arrangement
from warptile.layouts.triton.bitmap import plane_maps
from warptile.layouts.triton.packing import pack_rows
from warptile.layouts.triton.parameters import decoder_parameters
from warptile.layouts.triton.repack_device import move_bits, row_exponents

if TYPE_CHECKING:
    from warptile.formats import Format

ROWS = 32
"""Rows of a program that moves bits."""

UNIT_ROWS, UNIT_STEPS = 4, 16
"""Rows of a program that finds their units, and steps it reads at a time."""


@dataclass(frozen=True)
class _Moves:
    """The maps of a format's planes: their tables one after another, i32[..] on a device, and what `move_bits` takes of
    each as constants. span: elements along k, and source_bytes their file bytes."""

    tables: torch.Tensor
    planes: tuple[int, ...]
    span: int
    source_bytes: int


@cache
def _moves(format: Format, k: int, device: str) -> _Moves:
    tables: list[NDArray[np.int32]] = []
    planes: list[int] = []
    maps, at = plane_maps(format, k), 0
    for own, plane in zip(maps, arrangement(format.layout, k).planes, strict=False):
        elements, runs = own.moves.shape
        table = np.concatenate([own.moves.reshape(-1), own.flips.astype(np.uint32).view(np.int32)])
        planes += [at, elements, runs, plane.per, plane.bits]
        tables.append(table)
        at += table.size
    return _Moves(
        torch.from_numpy(np.concatenate(tables)).to(device), tuple(planes), maps[0].span, maps[0].source_bytes
    )


def repack(format: Format, source: torch.Tensor, n: int, k: int) -> torch.Tensor:
    """File blocks u8[n * row bytes] of w[n, k] on a device to its quad words, i32[words] there.

    Equal to the host's `pack_rows` to the bit. Work is enqueued on the current stream; a grid format, whose packing is
    no permutation of bits, is packed on the host instead.
    """
    if not format.permutes:
        packed, _ = pack_rows(format, source.cpu().numpy().reshape(n, -1), k)
        return torch.from_numpy(packed.view(np.int32)).to(source.device)
    arranged = arrangement(format.layout, k)
    starts, total = arranged.offsets(n)
    device = source.device
    # Every word is written where no row and no plane is padded.
    sizes = (plane.per * plane.bits * (k // plane.span) * n for plane in arranged.planes)
    whole = n % ROW_GRANULE == 0 and sum(sizes) == 32 * total
    words = (torch.empty if whole else torch.zeros)(total, dtype=torch.int32, device=device)
    moves = _moves(format, k, str(device))
    planes = (*starts[:-1], *(0,) * (MOST_PLANES - len(starts) + 1))
    move_bits[(k // moves.span, -(-n // ROWS), 1)](
        source, words, moves.tables, n, format.row_bytes(k), moves.source_bytes, *planes, PLANES=moves.planes, ROWS=ROWS
    )
    scales = (
        starts[len(arranged.code_planes) : -1] if arranged.scales.planes else starts[len(arranged.code_planes) - 1 :]
    )
    s0, s1, s2 = (*scales, 0, 0, 0)[:3]
    exponents = words[starts[-1] :].view(torch.uint8)
    row_exponents[(-(-n // UNIT_ROWS), 1, 1)](
        words, exponents, n, k // arranged.step, s0, s1, s2, L=decoder_parameters(arranged), ROWS=UNIT_ROWS,
        STEPS=UNIT_STEPS,
    )  # fmt: skip
    return words
