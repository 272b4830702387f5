"""How 64 or 128 rows of a step lie in shared memory and in the lanes that multiply them, in Gluon.

Rows are counted as the matrix unit does (rho): lane group r = 0..7 of warp w holds rows 16 w + r and 16 w + 8 + r.
They stand for the rows n = 16 w + 2 reversed(r) + h of the tile (h = 0, 1): neighbours lie in one lane, so that outputs
leave as pairs, and the bits of r are reversed, so that eight lanes that read 16 bytes each meet no bank twice. Rows
from 64 on are the same again, in further registers.

`P` describes a plane: (bits of an element, elements a row has, elements along k it spans, code plane or not); `L` is
`parameters.decoder_parameters`. A part is 64 elements along k, 8 slots of each quad lane.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.constexpr_function
def row_bytes(P):
    """Bytes of a plane that a row has in its span."""
    return P[0] * P[1] // 8


@gluon.constexpr_function
def is_wide(P):
    """Whether 64 rows fill whole swizzled blocks of 8 x 128 bytes."""
    return P[0] * P[1] // 8 >= 16


@gluon.constexpr_function
def element(P):
    """Gluon's type of a plane's element."""
    return {8: gl.uint8, 16: gl.uint16, 32: gl.int32}[P[0]]


@gluon.constexpr_function
def held_shape(P, rows):
    """Shape in shared memory of `rows` rows of a plane."""
    if P[0] * P[1] // 8 >= 16:
        return [rows * P[1] * P[0] // 1024, 1024 // P[0]]
    return [rows * P[1]]


@gluon.constexpr_function
def held_layout(P):
    """How 64 rows or more of a plane lie in shared memory."""
    if P[0] * P[1] // 8 >= 16:
        return gl.NVMMASharedLayout(128, P[0], 2)
    return gl.NVMMASharedLayout(0, P[0], 1)


@gluon.constexpr_function
def lane_layout(rows, tail):
    """Layout of [rows rho, 4 lanes, *tail], the tail in registers."""
    rank = 2 + len(tail)

    def basis(axis, value):
        return [value if i == axis else 0 for i in range(rank)]

    registers = []
    for axis in reversed(range(2, rank)):
        step = 1
        while step < tail[axis - 2]:
            registers.append(basis(axis, step))
            step *= 2
    registers.append(basis(0, 8))
    if rows == 128:
        registers.append(basis(0, 64))
    lanes = [basis(1, 1), basis(1, 2), basis(0, 1), basis(0, 2), basis(0, 4)]
    return gl.DistributedLinearLayout(registers, lanes, [basis(0, 16), basis(0, 32)], [], [rows, 4, *tail])


@gluon.constexpr_function
def load_layout(P, rows):
    """Layout that loads rows of a plane as `held_shape` has them: each lane its rows and, of a code plane, words."""
    row = P[1]
    own = row // 4 if P[3] else row
    wide = P[0] * P[1] // 8 >= 16
    across = 1024 // P[0]

    def basis(flat):
        return [flat // across, flat % across] if wide else [flat]

    registers, step = [], 1
    while step < own:
        registers.append(basis(step))
        step *= 2
    registers.append(basis(row))
    if rows == 128:
        registers.append(basis(64 * row))
    quad = [own, 2 * own] if P[3] else [0, 0]
    lanes = [basis(quad[0]), basis(quad[1]), basis(8 * row), basis(4 * row), basis(2 * row)]
    warps = [basis(16 * row), basis(32 * row)]
    shape = [rows * row // across, across] if wide else [rows * row]
    return gl.DistributedLinearLayout(registers, lanes, warps, [], shape)


@gluon.jit
def load_codes(held, P: gl.constexpr, ROWS: gl.constexpr):
    """A lane's words of a code plane, i32[rho, 4, words], zero-extended."""
    LOAD: gl.constexpr = load_layout(P, ROWS)
    WORDS: gl.constexpr = P[1] // 4
    OUT: gl.constexpr = lane_layout(ROWS, [WORDS])
    found = gl.reshape(held.load(LOAD), (ROWS // 16, 2, 2, 2, 2, 4, WORDS))
    found = gl.reshape(gl.permute(found, (0, 4, 3, 2, 1, 5, 6)), (ROWS, 4, WORDS))
    found = gl.convert_layout(found, OUT, assert_trivial=True)
    if P[0] < 32:
        found = found.to(gl.int32)
    return found


@gluon.jit
def load_rows(held, P: gl.constexpr, ROWS: gl.constexpr):
    """A row's elements of a scale plane, i32[rho, elements], zero-extended."""
    LOAD: gl.constexpr = load_layout(P, ROWS)
    OUT: gl.constexpr = gl.SliceLayout(1, lane_layout(ROWS, [P[1]]))
    found = gl.reshape(held.load(LOAD), (ROWS // 16, 2, 2, 2, 2, P[1]))
    found = gl.reshape(gl.permute(found, (0, 4, 3, 2, 1, 5)), (ROWS, P[1]))
    found = gl.convert_layout(found, OUT, assert_trivial=True)
    if P[0] < 32:
        found = found.to(gl.int32)
    return found


@gluon.jit
def load_plane(held, P: gl.constexpr, ROWS: gl.constexpr):
    """A plane's part of a step that has arrived."""
    if P[3]:
        found = load_codes(held, P, ROWS)
    else:
        found = load_rows(held, P, ROWS)
    return found
