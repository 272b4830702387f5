"""Scales of six bits in two steps: a chunk's pair of numbers, unpacked, and what it means.

A kernel that needs a row's scales often unpacks them once and keeps two bytes a chunk.
"""

from __future__ import annotations

from warptile.layouts.layout import Layout
from warptile.layouts.superblock_scales import SixBitScale16, SixBitScaleMinimum, glsl_six_bit_pair


def has_pairs(layout: Layout) -> bool:
    """Whether the layout packs pairs of six-bit numbers, one pair a chunk of 32."""
    return isinstance(layout.scales, SixBitScaleMinimum | SixBitScale16)


def six_bit_glsl(layout: Layout) -> str:
    """`scale_pair` and `scaled_pair`; needs `Layout.glsl(1)` before it. Empty for a layout without pairs.

    `uint scale_pair(row, chunk, rows)`: the chunk's two numbers, a | b << 8.
    `Chunk scaled_pair(pair, row, chunk, rows)`: d, and the file's minimum where it has one; no codes.
    """
    if not has_pairs(layout):
        return ""
    first = len(layout.codes.planes(layout.block))
    if isinstance(layout.scales, SixBitScaleMinimum):
        value = (
            f"    vec2 dm = unpackHalf2x16(W[P.plane[{first}] + (chunk / 8u) * rows + row]);\n"
            "    c.d = dm.x * float(a);\n    c.m = dm.y * float(b);\n"
        )
    else:
        value = (
            f"    uint e = (chunk / 8u) * rows + row;\n"
            f"    float d = unpackHalf2x16((W[P.plane[{first}] + (e >> 1)] >> (16u * (e & 1u))) & 0xffffu).x;\n"
            "    c.d = d * vec2(int(a) - 32, int(b) - 32);\n"
        )
    return f"""\
uint scale_pair(uint row, uint chunk, uint rows) {{
{glsl_six_bit_pair(first + 1)}    return a | (b << 8);
}}
Chunk scaled_pair(uint pair, uint row, uint chunk, uint rows) {{
    Chunk c;
    uint a = pair & 255u, b = (pair >> 8) & 255u;
{value}    return c;
}}
"""
