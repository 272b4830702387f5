"""What the Triton kernels share: the arguments of a launch, operand types, and bytes of a step."""

from __future__ import annotations

from typing import Any

from warptile import formats
from warptile.contracts import BrokenRule, Limits, Problem, Tile, UnusableInput, WeightSlice
from warptile.layouts.triton import MOST_PLANES, Arrangement, arrangement
from warptile.layouts.triton.parameters import decoder_parameters

POINTERS = {"fp16": "*fp16", "bf16": "*bf16", "fp32": "*fp32"}
OPERANDS = {"fp16": "fp16", "bf16": "bf16", "fp32": "tf32"}
PLANE_ARGUMENTS = (*(f"p{i}" for i in range(MOST_PLANES)), "unit")
SCALARS = 6 + len(PLANE_ARGUMENTS)
ALIGNED = ("X", "W", "x_stride", "k", *PLANE_ARGUMENTS)
COPY_BYTES = 16
DTYPE_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2}


def arranged(problem: Problem) -> Arrangement:
    """The quad arrangement of the problem's weights. Raises UnusableInput where k does not fit the format."""
    return arrangement(formats.by_name(problem.format).layout, problem.k)


def parameters(problem: Problem) -> tuple[Any, ...]:
    """`L` of the device decoder for the problem's weights."""
    return decoder_parameters(arranged(problem))


def pointer(dtype: str) -> str:
    """Triton's pointer type for "fp16", "bf16" or "fp32". Raises UnusableInput for another."""
    try:
        return POINTERS[dtype]
    except KeyError:
        raise UnusableInput(f"activations and outputs are {', '.join(POINTERS)}; not {dtype!r}") from None


def scalars(problem: Problem, piece: WeightSlice, x_stride: int, y_stride: int) -> tuple[int, ...]:
    """`m, rows, k, row0, x_stride, y_stride, p0 .. p5, unit`: what every kernel over packed weights takes."""
    *planes, unit = piece.planes
    padded = (*planes, *(0,) * (MOST_PLANES - len(planes)))
    return (problem.m, piece.rows, problem.k, piece.row0, x_stride, y_stride, *padded, unit)


def step_bytes(arrangement: Arrangement, rows: int) -> int:
    """Shared bytes that the packed weights of `rows` rows take in one step in flight: 16 a row for words that each quad
    lane loads itself."""
    code = sum(p.per * p.bits // 8 for p in arrangement.code_planes if p.per > 1)
    tails = sum(COPY_BYTES for p in arrangement.code_planes if p.per == 1)
    scales = sum(COPY_BYTES if p.per * p.bits <= 32 else p.per * p.bits // 8 for p in arrangement.scales.planes)
    return rows * (code + tails + scales)


def shape_rules(problem: Problem) -> list[BrokenRule]:
    """The format's own rule on k, as a broken rule."""
    try:
        arranged(problem)
    except UnusableInput as error:
        return [BrokenRule("k is whole blocks of the format", str(error))]
    return []


def powers_of_two(tile: Tile, names: tuple[str, ...]) -> list[BrokenRule]:
    """Each named field must be a power of two."""
    values = tile.fields()
    return [
        BrokenRule(f"{name} is a power of two", f"{name} = {values[name]}")
        for name in names
        if not isinstance(value := values[name], int) or value < 1 or value & (value - 1)
    ]


def device_rules(limits: Limits) -> list[BrokenRule]:
    """The device must be one Triton compiles for."""
    if limits.arrangement != "quads":
        return [BrokenRule("the device takes weights in quads", f"{limits.name} takes {limits.arrangement}", True)]
    return []
