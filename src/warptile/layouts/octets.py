"""Decoders by the octet: the eight codes a lane of a matrix unit multiplies at once, and nothing of the chunk around.

`Layout.glsl()` loads a chunk of 32 elements whole. A lane that holds elements 8j .. 8j+7 of a chunk for a j of its own
would index the chunk's words by a number the compiler does not know; here j is part of the address instead.
"""

from __future__ import annotations

from warptile.layouts.codes import BitPlanes
from warptile.layouts.layout import Layout

ROWS = 4


def octet_glsl(layout: Layout) -> str:
    """`struct Octet`, `load_octet`, `load_octets4` and `octet4`; needs `Layout.glsl(1)` before it.

    `Octet load_octet(row, chunk, j, rows)`: elements 8j .. 8j+7 (0 <= j < 4) of a chunk, raw words as loaded.
    `void load_octets4(row, chunk, j, rows, out Octet o[4])`: of rows row .. row+3, with one vector load a plane word
    where codes lie in bit planes; row and rows are multiples of 4 then.
    `uint octet4(o, j, h)`: codes of elements 8j+4h .. 8j+4h+3, one a byte; h is 0 or 1.
    `uint octet_nibbles(o, h, odd)`, where `has_nibbles`: 16^h times the codes of elements e and e + 2, e = 8j+4h+odd,
    in the low and the high half.
    """
    return _bit_planes(layout.codes) if isinstance(layout.codes, BitPlanes) else _CHUNKED


def has_nibbles(layout: Layout) -> bool:
    """Whether an octet is one word of eight codes of 4 bits."""
    return isinstance(layout.codes, BitPlanes) and layout.codes.widths == (4,)


def _bit_planes(codes: BitPlanes) -> str:
    members, one, four, terms = "", "", "", []
    low = 0
    for p, b in enumerate(codes.widths):
        words = 2 if b == 8 else 1
        members += f"    uint p{p}[{words}];\n"
        word = {8: "2u * j", 4: "j", 2: "(j >> 1)", 1: "0u"}[b]
        for w in range(words):
            at = f"P.plane[{p}] + (chunk * {b}u + {word} + {w}u) * rows + row"
            one += f"    o.p{p}[{w}] = W[{at}];\n"
            four += f"    v = W4[({at}) / 4u];\n"
            four += f"    o[0].p{p}[{w}] = v.x; o[1].p{p}[{w}] = v.y; o[2].p{p}[{w}] = v.z; o[3].p{p}[{w}] = v.w;\n"
        terms.append(_codes(p, b, low))
        low += b
    return f"""\
layout(std430, set = 0, binding = 1) readonly buffer W4Buffer {{ uvec4 W4[]; }};
struct Octet {{
{members}}};
Octet load_octet(uint row, uint chunk, uint j, uint rows) {{
    Octet o;
{one}    return o;
}}
void load_octets4(uint row, uint chunk, uint j, uint rows, out Octet o[4]) {{
    uvec4 v;
{four}}}
uint octet4(Octet o, uint j, uint h) {{
    return {" | ".join(terms)};
}}
{_NIBBLES if codes.widths == (4,) else ""}"""


def _codes(plane: int, bits: int, low: int) -> str:
    if bits == 8:
        return f"o.p{plane}[h]"
    mask = ((1 << bits) - 1) * 0x01010101
    shift = {4: "4u * h", 2: "4u * (j & 1u) + 2u * h", 1: "2u * j + h"}[bits]
    term = f"((o.p{plane}[0] >> ({shift})) & {mask:#010x}u)"
    return f"({term} << {low}u)" if low else term


_NIBBLES = """\
uint octet_nibbles(Octet o, uint h, uint odd) {
    return (o.p0[0] >> (8u * odd)) & (h == 0u ? 0x000f000fu : 0x00f000f0u);
}
"""

_CHUNKED = """\
struct Octet {
    uint q[2];
};
Octet load_octet(uint row, uint chunk, uint j, uint rows) {
    Chunk c = load_chunk(row, chunk, rows);
    Octet o;
    [[unroll]] for (uint h = 0u; h < 2u; ++h) {
        uint low = j == 0u ? codes4(c, h) : codes4(c, 2u + h), high = j == 2u ? codes4(c, 4u + h) : codes4(c, 6u + h);
        o.q[h] = j < 2u ? low : high;
    }
    return o;
}
void load_octets4(uint row, uint chunk, uint j, uint rows, out Octet o[4]) {
    [[unroll]] for (uint e = 0u; e < 4u; ++e) o[e] = load_octet(row + e, chunk, j, rows);
}
uint octet4(Octet o, uint j, uint h) {
    return o.q[h];
}
"""
