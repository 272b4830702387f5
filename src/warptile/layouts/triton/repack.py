"""Packing on the device: file bytes in, quad words out, at the speed of its memory."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import torch

from warptile.layouts.triton.arrangement import arrangement
from warptile.layouts.triton.bitmap import plane_maps
from warptile.layouts.triton.packing import pack_rows
from warptile.layouts.triton.parameters import decoder_parameters
from warptile.layouts.triton.repack_device import move_bits, row_exponents

if TYPE_CHECKING:
    from warptile.formats import Format

_PLANE_TYPES = {8: torch.uint8, 16: torch.uint16, 32: torch.int32}
_ELEMENTS_A_PROGRAM = 1024


@cache
def _tables(format: Format, k: int, device: str) -> tuple[tuple[torch.Tensor, torch.Tensor], ...]:
    return tuple(
        (
            torch.from_numpy(m.moves.copy()).to(device),
            torch.from_numpy(m.flips.astype(np.uint32).view(np.int32).copy()).to(device),
        )
        for m in plane_maps(format, k)
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
    words = torch.zeros(total, dtype=torch.int32, device=device)
    maps = plane_maps(format, k)
    span = maps[0].span
    for start, plane, own, (moves, flips) in zip(
        starts, arranged.planes, maps, _tables(format, k, str(device)), strict=False
    ):
        elements, runs = own.moves.shape
        rows = max(1, _ELEMENTS_A_PROGRAM // elements)
        target = words[start:].view(_PLANE_TYPES[plane.bits])
        grid = (k // span, -(-n // rows), 1)
        move_bits[grid](
            source, target, moves, flips, n, format.row_bytes(k), own.source_bytes, elements // plane.per,
            ELEMENTS=elements, RUNS=runs, PER=plane.per, ROWS=rows,
        )  # fmt: skip
    parameters = decoder_parameters(arranged)
    scales = (
        starts[len(arranged.code_planes) : -1] if arranged.scales.planes else starts[len(arranged.code_planes) - 1 :]
    )
    s0, s1, s2 = (*scales, 0, 0, 0)[:3]
    exponents = words[starts[-1] :].view(torch.uint8)
    row_exponents[(-(-n // 64), 1, 1)](words, exponents, n, k // arranged.step, s0, s1, s2, L=parameters, ROWS=64)
    return words
