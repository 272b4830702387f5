"""Decoders that fetch several neighbouring rows with one load.

Rows run fastest in every plane, so the elements that one row's decoder reads lie next to those of the next row: one
vector load, at the index of the first row, holds them all. On a device that takes loads apart lane by lane, or that
counts load instructions, this is the cheaper way to read.
"""

from __future__ import annotations

_VECTORS = {2: "uvec2", 4: "uvec4"}

_ACCESSORS = """\
layout(std430, set = 0, binding = 1) readonly buffer WideBuffer {{ {words} Wide[]; }};
{half_buffer}uint wide_row = 0u;  // which of the rows of a vector load the accessors hand back
uint wide_word(uint at) {{
    {words} v = Wide[at / {rows}u];
    return v[wide_row];
}}
uint plane_u16(uint plane, uint e) {{
    {halves} v = {half_array}[(P.plane[plane] + (e >> 1)) / {half_words}u];
    return (v{half_at} >> (16u * (wide_row & 1u))) & 0xffffu;
}}
float plane_half(uint plane, uint e) {{ return unpackHalf2x16(plane_u16(plane, e)).x; }}
uint plane_byte(uint plane, uint e) {{
    return (W[P.plane[plane] + (e >> 2)] >> (8u * ((e & 3u) + wide_row))) & 0xffu;
}}
"""


def wide_reads(decoder: str, rows: int) -> str:
    """The decoder with every read of `W[]` and every plane accessor made a read of `rows` neighbouring rows."""
    accessors = _ACCESSORS.format(
        rows=rows,
        words=_VECTORS[rows],
        halves="uvec2" if rows == 4 else "uint",
        half_array="WideHalves" if rows == 4 else "W",
        half_words=rows // 2,
        half_at="[wide_row >> 1]" if rows == 4 else "",
        half_buffer=(
            "layout(std430, set = 0, binding = 1) readonly buffer WideHalfBuffer { uvec2 WideHalves[]; };\n"
            if rows == 4
            else ""
        ),
    )
    return accessors + replace_reads(decoder, "W[", "wide_word(") + load_chunks(rows)


def load_chunks(rows: int) -> str:
    """`load_chunks(row, chunk, rows, c)`: the chunks of `rows` neighbouring rows."""
    select = "        wide_row = e;\n" if rows > 1 else ""
    return f"""\
void load_chunks(uint row, uint chunk, uint rows, out Chunk c[{rows}]) {{
    [[unroll]] for (uint e = 0u; e < {rows}u; ++e) {{
{select}        c[e] = load_chunk(row, chunk, rows);
    }}
}}
"""


def replace_reads(text: str, array: str, call: str) -> str:
    """Every `array...]` with balanced brackets turned into `call...)`."""
    out, at = "", 0
    while (start := text.find(array, at)) >= 0:
        end, depth = start + len(array), 1
        while depth:
            depth += {"[": 1, "]": -1}.get(text[end], 0)
            end += 1
        out += text[at:start] + call + text[start + len(array) : end - 1] + ")"
        at = end
    return out + text[at:]
