"""Decoders that fetch several rows with one load: no read may stay that fetches one row for all of them."""

from __future__ import annotations

import pytest

from warptile import formats
from warptile.layouts.wide import replace_reads


def test_brackets_inside_an_index_stay() -> None:
    text = "a = W[P.plane[0] + b[c]] + X[1] + W[d];"
    assert replace_reads(text, "W[", "f(") == "a = f(P.plane[0] + b[c]) + X[1] + f(d);"


@pytest.mark.parametrize("name", formats.all_formats())
@pytest.mark.parametrize("rows", [2, 4])
def test_no_format_s_decoder_keeps_a_read_of_one_row(name: str, rows: int) -> None:
    layout = formats.by_name(name).layout
    assert "W[" in layout.glsl()
    decoder = layout.glsl(rows).split("struct Chunk")[1]
    assert "W[" not in decoder
    assert f"out Chunk c[{rows}]" in decoder
