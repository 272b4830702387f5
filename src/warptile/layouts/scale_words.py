"""A chunk's scales in two steps: the words as loaded, and what they mean.

A kernel that loads ahead keeps the words, so that no arithmetic waits for them before they are needed.
"""

from __future__ import annotations

from warptile.layouts.layout import Layout
from warptile.layouts.wide import replace_reads

_ACCESSORS = {
    "plane_u16": ("W[P.plane[{plane}] + (({e}) >> 1)]", "((({word}) >> (16u * (({e}) & 1u))) & 0xffffu)"),
    "plane_byte": ("W[P.plane[{plane}] + (({e}) >> 2)]", "((({word}) >> (8u * (({e}) & 3u))) & 0xffu)"),
    "plane_half": (
        "W[P.plane[{plane}] + (({e}) >> 1)]",
        "unpackHalf2x16((({word}) >> (16u * (({e}) & 1u))) & 0xffffu).x",
    ),
}


def scale_words_glsl(layout: Layout) -> str:
    """`struct ScaleWords`, `load_scale_words` and `scaled`; needs `Layout.glsl(1)` before it.

    `ScaleWords load_scale_words(row, chunk, rows)`: the words that hold a chunk's scales.
    `Chunk scaled(raw, row, chunk, rows)`: d, and m where the layout has one, as `load_chunk` gives them; no codes.
    """
    text = _plain_reads(layout.glsl_scale())
    load, count = _numbered(text, "(raw.w[{i}] = {read})")
    value, _ = _numbered(text, "raw.w[{i}]")
    return f"""\
struct ScaleWords {{
    uint w[{count}];
}};
ScaleWords load_scale_words(uint row, uint chunk, uint rows) {{
    ScaleWords raw;
    Chunk c;
{load}    return raw;
}}
Chunk scaled(ScaleWords raw, uint row, uint chunk, uint rows) {{
    Chunk c;
{value}    return c;
}}
"""


def _plain_reads(text: str) -> str:
    """Plane accessors written out as reads of `W[]`."""
    for name, (read, value) in _ACCESSORS.items():
        while (start := text.find(f"{name}(")) >= 0:
            end, depth = start + len(name) + 1, 1
            while depth:
                depth += {"(": 1, ")": -1}.get(text[end], 0)
                end += 1
            plane, e = text[start + len(name) + 1 : end - 1].split(", ", 1)
            word = read.format(plane=plane, e=e)
            text = text[:start] + value.format(word=word, e=e) + text[end:]
    return text


def _numbered(text: str, form: str) -> tuple[str, int]:
    """Each read of `W[]` replaced by `form` with its number i and itself; how many there are."""
    marked = replace_reads(text, "W[", "\0(")
    parts = marked.split("\0(")
    out = parts[0]
    for i, part in enumerate(parts[1:]):
        end, depth = 0, 1
        while depth:
            depth += {"(": 1, ")": -1}.get(part[end], 0)
            end += 1
        out += form.format(i=i, read=f"W[{part[: end - 1]}]") + part[end:]
    return out, len(parts) - 1
