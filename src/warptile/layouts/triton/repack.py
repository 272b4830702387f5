"""Packing on the device: file bytes in, quad words out, in one launch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from warptile.layouts.triton.arrangement import MOST_PLANES, ROW_GRANULE, Arrangement, arrangement
from warptile.layouts.triton.bitmap import PlaneMap, plane_maps
from warptile.layouts.triton.packing import pack_rows
from warptile.layouts.triton.parameters import Parameters, decoder_parameters
from warptile.layouts.triton.plane import QuadPlane
from warptile.layouts.triton.repack_device import move_rows

if TYPE_CHECKING:
    from warptile.formats import Format

ROWS, ELEMENTS, WARPS = 4, 512, 4
"""Of a program: rows, the most elements of a plane it takes of each in a turn of its loop, and warps."""

UNIT_STEPS = 32 * WARPS // ROWS
"""Steps whose scales a program reads at a time for the units of its rows: one a thread."""


@dataclass(frozen=True)
class _Plan:
    """What packing rows of k elements of a format takes on one device, whatever the rows are.

    tables: i32[..], whole numbers from 0, then what the maps have an element, plane by plane. constants: PLANES of
    `move_rows`. source_numbers: of a span, `unit` bytes each; spans: make a row.
    """

    arranged: Arrangement
    parameters: Parameters
    tables: torch.Tensor
    constants: tuple[int, ...]
    unit: int
    source_numbers: int
    spans: int


@cache
def _plan(format: Format, k: int, device: str) -> _Plan:
    arranged, maps = arrangement(format.layout, k), plane_maps(format, k)
    spans = k // maps[0].span
    taken = [_spans_a_turn(len(own.at), spans) for own in maps]
    tables = [np.arange(max(len(own.at) for own in maps), dtype=np.int32)]
    constants: list[tuple[int, ...]] = []
    at = tables[0].size
    for own, plane, count in zip(maps, arranged.planes, taken, strict=False):
        constants.append(_constants(own, plane, at, count, spans % count == 0))
        tables.append(_table(own))
        at += tables[-1].size
    starts = np.cumsum([1 + len(constants), *map(len, constants)])[:-1].tolist()
    return _Plan(
        arranged=arranged,
        parameters=decoder_parameters(arranged),
        tables=torch.from_numpy(np.concatenate(tables)).to(device),
        constants=(len(constants), *starts, *(number for each in constants for number in each)),
        unit=maps[0].unit,
        source_numbers=maps[0].source_bytes // maps[0].unit,
        spans=spans,
    )


def _spans_a_turn(elements: int, spans: int) -> int:
    """A power of two: at most ELEMENTS elements where a span has so many, and no more than hold a row's spans."""
    count = 1
    while 2 * count * elements <= ELEMENTS and count < spans:
        count *= 2
    return count


def _table(own: PlaneMap) -> NDArray[np.int32]:
    """i32[rows of the table, elements] of a map, flat: at | turn << 16 of each move, then the moves' masks where the
    map has them, then the flips where any is set."""
    rows = [(own.at | own.turns << 16).T.reshape(-1)]
    if own.masks is not None:
        rows.append(own.masks.T.reshape(-1).view(np.int32))
    if own.flips.any():
        rows.append(own.flips.view(np.int32))
    return np.concatenate(rows)


def _constants(own: PlaneMap, plane: QuadPlane, at: int, spans: int, even: bool) -> tuple[int, ...]:
    """A plane's part of PLANES: where its table starts, elements of a span, of a unit, bits of an element, moves,
    parts a move, whether masks and flips are in the table, spans a turn of the loop, whether
    the last turn ends with the row; then (mask, turns) of each move's parts, masks of 0 for those it has not."""
    most = max(map(len, own.parts))
    parts = [part for move in own.parts for part in (*move, *((0, 0),) * (most - len(move)))]
    header = (at, len(own.at), plane.per, plane.bits, len(own.parts), most)
    flags = (int(own.masks is not None), int(own.flips.any()), spans, int(even))
    return (*header, *flags, *(number for part in parts for number in part))


def repack(format: Format, source: torch.Tensor, n: int, k: int) -> torch.Tensor:
    """File blocks u8[n * row bytes] of w[n, k] on a device to its quad words, i32[words] there.

    Equal to the host's `pack_rows` to the bit. Work is enqueued on the current stream; a grid format, whose packing is
    no permutation of bits, is packed on the host instead.
    """
    if not format.permutes:
        packed, _ = pack_rows(format, source.cpu().numpy().reshape(n, -1), k)
        return torch.from_numpy(packed.view(np.int32)).to(source.device)
    device = source.device
    plan = _plan(format, k, str(device))
    arranged = plan.arranged
    if source.data_ptr() % plan.unit:
        source = source.clone()
    starts, total = arranged.offsets(n)
    # Every word is written where no row and no plane is padded.
    sizes = (plane.per * plane.bits * (k // plane.span) * n for plane in arranged.planes)
    whole = n % ROW_GRANULE == 0 and sum(sizes) == 32 * total
    words = (torch.empty if whole else torch.zeros)(total, dtype=torch.int32, device=device)
    planes = (*starts[:-1], *(0,) * (MOST_PLANES - len(starts) + 1))
    scales = (
        starts[len(arranged.code_planes) : -1] if arranged.scales.planes else starts[len(arranged.code_planes) - 1 :]
    )
    s0, s1, s2 = (*scales, 0, 0, 0)[:3]
    move_rows[(-(-n // ROWS), 1, 1)](
        source, words, plan.tables, words[starts[-1] :].view(torch.uint8), n, format.row_bytes(k) // plan.unit,
        plan.source_numbers, plan.spans, k // arranged.step, *planes, s0, s1, s2, PLANES=plan.constants,
        UNIT=plan.unit, L=plan.parameters, ROWS=ROWS, STEPS=UNIT_STEPS,
        num_warps=WARPS,
    )  # fmt: skip
    return words
