"""Decoded values equal the `gguf` package's to the bit, on any byte pattern and on a real model."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
from support.blocks import bits, random_blocks
from support.models import smollm2

from warptile import formats
from warptile.formats import Format
from warptile.gguf import open_gguf

OWN = {"Q1_0", "Q2_0", "PQ2_0", "PTQ1_0"}  # the package decodes none of these
SHARED = [f for f in formats.all_formats().values() if f.name not in OWN]


@pytest.mark.parametrize("format", SHARED, ids=lambda f: f.name)
def test_any_bytes_decode_as_the_package_decodes_them(format: Format) -> None:
    blocks = random_blocks(format, 4096, seed=format.gguf_id)
    with np.errstate(all="ignore"):
        want = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType(format.gguf_id))
    assert np.array_equal(bits(format.decode(blocks)), bits(want))


@pytest.mark.parametrize("format", formats.all_formats().values(), ids=lambda f: f.name)
def test_split_loses_nothing(format: Format) -> None:
    blocks = random_blocks(format, 4096, seed=1)
    assert np.array_equal(format.join(format.split(blocks)), blocks)


@pytest.mark.parametrize("name", ["TQ1_0", "TQ2_0"])
def test_encoders_write_what_the_package_writes(name: str) -> None:
    format = formats.by_name(name)
    rng = np.random.default_rng(3)
    values = (rng.standard_normal((300, 256)) * 10.0 ** rng.uniform(-4, 3, (300, 1))).astype(np.float32)
    values[0] = 0
    assert format.encode is not None
    want = gguf.quants.quantize(values, gguf.GGMLQuantizationType(format.gguf_id))
    assert np.array_equal(format.encode(values), want)


def test_every_quantized_type_of_a_real_model_decodes_as_the_package_decodes_it() -> None:
    model = open_gguf(smollm2())
    known = {f.gguf_id for f in SHARED}
    first = {info.type_id: name for name, info in reversed(model.tensors.items()) if info.type_id in known}
    assert first, "the real model has quantized tensors"
    for type_id, name in first.items():
        format = formats.by_gguf_id(type_id)
        blocks = model.blocks(name)[:64]
        want = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType(type_id))
        got = format.decode(blocks.reshape(-1, format.block_bytes)).reshape(want.shape)
        assert np.array_equal(bits(got), bits(want)), name
