"""A warp's straight-line PTX on numpy: what the texts that kernels hand to the assembler compute, lane by lane."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

U32 = NDArray[np.uint32]
LANES = np.arange(32)


def run(text: str, given: Mapping[int, NDArray[np.generic]]) -> dict[int, U32]:
    """Operands $n after `text`: 32 lanes of 32 bits each; `given` are those it starts with. Raises KeyError for an
    instruction that is not known here."""
    held: dict[str, U32] = {f"${n}": np.asarray(v).view(np.uint32).copy() for n, v in given.items()}
    halves: dict[str, NDArray[np.uint16]] = {}
    flags: dict[str, NDArray[np.bool_]] = {}

    def value(name: str) -> U32:
        if name in held:
            return held[name]
        number = int(name[2:], 16) if name.startswith("0f") else int(name, 0)
        return np.full(32, number & 0xFFFFFFFF, np.uint32)

    def real(name: str) -> NDArray[np.float32]:
        return value(name).view(np.float32)

    for line in (part.strip("{ \n") for part in text.strip("{} \n").split(";")):
        if not line or line.startswith(".reg"):
            continue
        name, rest = line.split(None, 1)
        groups = [[p.strip() for p in (g[0] or g[1]).split(",")] for g in re.findall(r"\{([^}]*)\}|([^,{}]+)", rest)]
        arguments = [g[0] for g in groups if g[0]]
        to = arguments[0]
        with np.errstate(all="ignore"):
            if name.startswith("mma."):
                matrices = [g for g in groups if len(g) > 1]
                for at, found in zip(
                    matrices[0], product([[value(n) for n in m] for m in matrices[1:]], ".u8." in name), strict=True
                ):
                    held[at] = found
            elif name == "mov.b32" and len(groups[-1]) == 2:
                held[to] = np.stack([halves[n] for n in groups[-1]], axis=1).view(np.uint32).reshape(32)
            elif name == "fma.rn.f16x2":
                x, y, z = (value(n).view(np.float16).astype(np.float64) for n in arguments[1:])
                held[to] = (x * y + z).astype(np.float16).view(np.uint32)
            elif name == "mov.b32" and len(groups[0]) == 2:
                low, high = groups[0]
                halves[low], halves[high] = value(groups[-1][0]).view(np.uint16).reshape(32, 2).T
            elif name == "mov.b32":
                held[to] = value(arguments[1]).copy()
            elif name == "cvt.f32.f16":
                held[to] = halves[arguments[1]].copy().view(np.float16).astype(np.float32).view(np.uint32)
            elif name == "cvt.u16.u32":
                halves[to] = value(arguments[1]).astype(np.uint16)
            elif name == "setp.ge.u32":
                flags[to] = value(arguments[1]) >= value(arguments[2])
            elif name == "selp.b32":
                held[to] = np.where(flags[arguments[3]], value(arguments[1]), value(arguments[2]))
            elif name == "shfl.sync.bfly.b32":
                held[to] = value(arguments[1])[LANES ^ int(arguments[2])]
            elif name == "fma.rn.f32":
                a, b, c = (real(n).astype(np.float64) for n in arguments[1:])
                held[to] = (a * b + c).astype(np.float32).view(np.uint32)
            elif name in ("mul.rn.f32", "sub.rn.f32"):
                a32, b32 = real(arguments[1]), real(arguments[2])
                held[to] = (a32 * b32 if name[0] == "m" else a32 - b32).view(np.uint32)
            else:
                held[to] = WHOLE[name](*(value(n) for n in arguments[1:])).astype(np.uint32)
    return {int(n[1:]): v for n, v in held.items() if n.startswith("$")}


def plain(function: object) -> Any:
    """The Python function behind a compile-time one."""
    return getattr(function, "fn", function)


def permuted(a: U32, b: U32, pick: U32) -> U32:
    """prmt.b32."""
    eight = np.concatenate([a.view(np.uint8).reshape(32, 4), b.view(np.uint8).reshape(32, 4)], axis=1)
    picks = pick[:, None] >> np.arange(0, 16, 4, dtype=np.uint32) & np.uint32(7)
    return np.ascontiguousarray(np.take_along_axis(eight, picks.astype(np.int64), axis=1)).view(np.uint32).reshape(32)


def larger_halves(a: U32, b: U32) -> U32:
    """max.u16x2."""
    return np.maximum(a.view(np.uint16), b.view(np.uint16)).view(np.uint32)


def product(matrices: list[list[U32]], unsigned: bool) -> list[U32]:
    """mma.m16n8k32.row.col.s32.s8.s8.s32 (A of u8 where `unsigned`): D of A, B and C, as the instruction's lanes hold
    them."""
    a, b, c = (np.stack(m) for m in matrices)
    left, right, total = np.zeros((16, 32), np.int64), np.zeros((32, 8), np.int64), np.zeros((16, 8), np.int64)
    row, quad = LANES // 4, LANES % 4
    for i in range(4):
        four = a[i].view(np.uint8 if unsigned else np.int8).reshape(32, 4)
        for e in range(4):
            left[row + 8 * (i % 2), quad * 4 + e + 16 * (i // 2)] = four[:, e]
        total[row + 8 * (i // 2), quad * 2 + i % 2] = c[i].view(np.int32)
    for i in range(2):
        four = b[i].view(np.int8).reshape(32, 4)
        for e in range(4):
            right[quad * 4 + e + 16 * i, row] = four[:, e]
    total += left @ right
    return [total[row + 8 * (i // 2), quad * 2 + i % 2].astype(np.int32).view(np.uint32) for i in range(4)]


def looked_up(a: U32, b: U32, c: U32, table: U32) -> U32:
    """lop3.b32: bit by bit what `table` holds for the three operands' bits."""
    found = np.zeros(32, np.uint32)
    for at in range(8):
        own = (a if at & 4 else ~a) & (b if at & 2 else ~b) & (c if at & 1 else ~c)
        found |= own * (table >> np.uint32(at) & np.uint32(1))
    return found


def of_halves(a: U32, b: U32, times: bool) -> U32:
    """mul.rn.f16x2 or add.rn.f16x2."""
    x, y = a.view(np.float16), b.view(np.float16)
    return (x * y if times else x + y).view(np.uint32)


WHOLE = {
    "and.b32": lambda a, b: a & b,
    "xor.b32": lambda a, b: a ^ b,
    "shl.b32": lambda a, b: a << b,
    "shr.u32": lambda a, b: a >> b,
    "prmt.b32": permuted,
    "lop3.b32": looked_up,
    "add.rn.f16x2": lambda a, b: of_halves(a, b, times=False),
    "mul.rn.f16x2": lambda a, b: of_halves(a, b, times=True),
    "mul.lo.u32": lambda a, b: a * b,
    "mad.lo.s32": lambda a, b, c: a * b + c,
    "sub.s32": lambda a, b: a - b,
    "add.s32": lambda a, b: a + b,
    "max.u32": np.maximum,
    "min.s32": lambda a, b: np.minimum(a.view(np.int32), b.view(np.int32)).view(np.uint32),
    "max.u16x2": larger_halves,
}
"""32-bit instructions of whole numbers, by name."""
