"""A chunk of several neighbouring rows in two steps: the words as loaded, and what they mean row by row.

`Layout.glsl(rows)` loads and decodes in one call and leaves it to a compiler to see that rows share loads. Here the
loads are written once, as vectors, and a kernel issues them long before it decodes.
"""

from __future__ import annotations

import re

from warptile.layouts.layout import Layout

ROWS = (1, 2, 4)

_READ = re.compile(r"W\[|plane_u16\(|plane_half\(|plane_byte\(")
_VECTORS = {1: "uint", 2: "uvec2", 4: "uvec4"}
_VIEWS = {
    1: "",
    2: "layout(std430, set = 0, binding = 1) readonly buffer WidePairs { uvec2 W2[]; };\n",
    4: "layout(std430, set = 0, binding = 1) readonly buffer WidePairs { uvec2 W2[]; };\n"
    "layout(std430, set = 0, binding = 1) readonly buffer WideQuads { uvec4 W4[]; };\n",
}


def wide_words_glsl(layout: Layout, rows: int) -> str:
    """`struct WideWords`, `load_wide`, `wide_chunk` for 1, 2 or 4 neighbouring rows; needs `Layout.glsl()` before it.

    `WideWords load_wide(row, chunk, rows)`: the words that hold a chunk's codes and scales of as many rows from `row`
    on; row and the slice's rows are multiples of their number. `Chunk wide_chunk(raw, e, row, chunk, rows)`: the chunk
    of row row + e, as `load_chunk` gives it; e is meant to be constant after unrolling.
    """
    text = layout.codes.glsl_load() + layout.glsl_scale()
    members, load, value, at, count = "", "", "", 0, 0
    while found := _READ.search(text, at):
        end = _closing(text, found.end())
        member, loaded, meant = _read(found.group()[:-1], text[found.end() : end - 1], count, rows)
        members += f"    {member} w{count};\n"
        load += text[at : found.start()] + loaded
        value += text[at : found.start()] + meant
        at, count = end, count + 1
    load, value = load + text[at:], value + text[at:]
    return f"""\
{_VIEWS[rows]}struct WideWords {{
{members}}};
WideWords load_wide(uint row, uint chunk, uint rows) {{
    WideWords raw;
    Chunk c;
{load}    return raw;
}}
Chunk wide_chunk(WideWords raw, uint wide_row, uint row, uint chunk, uint rows) {{
    Chunk c;
{value}    return c;
}}
"""


def _closing(text: str, at: int) -> int:
    """The position after the bracket that closes one opened before `at`."""
    depth = 1
    while depth:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(text[at], 0)
        at += 1
    return at


def _read(call: str, inside: str, i: int, rows: int) -> tuple[str, str, str]:
    """The member that read number i fills, the expression that fills it, and the one that says what a row's part is."""
    raw = f"raw.w{i}"
    if call == "W":
        if rows == 1:
            return "uint", f"({raw} = W[{inside}])", raw
        return _VECTORS[rows], f"({raw} = W{rows}[({inside}) / {rows}u]).x", f"{raw}[wide_row]"
    plane, e = inside.split(", ", 1)
    if call == "plane_byte":
        shift = f"8u * ((({e}) & 3u) + wide_row)"
        return "uint", f"({raw} = W[P.plane[{plane}] + (({e}) >> 2)])", f"(({raw} >> ({shift})) & 0xffu)"
    word = f"P.plane[{plane}] + (({e}) >> 1)"
    if rows == 4:
        member, loaded = "uvec2", f"({raw} = W2[({word}) / 2u]).x"
        meant = f"(({raw}[wide_row >> 1] >> (16u * (wide_row & 1u))) & 0xffffu)"
    else:
        half = "wide_row" if rows == 2 else f"({e})"
        member, loaded, meant = "uint", f"({raw} = W[{word}])", f"(({raw} >> (16u * ({half} & 1u))) & 0xffffu)"
    if call == "plane_half":
        return member, f"unpackHalf2x16({loaded}).x", f"unpackHalf2x16({meant}).x"
    return member, loaded, meant
