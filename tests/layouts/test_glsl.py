"""The device decoder: what every kernel multiplies with must be the file's values, for every format."""

from __future__ import annotations

import numpy as np
import pytest
from support.blocks import random_blocks
from support.models import smollm2

from warptile import formats
from warptile.contracts import Launch, Problem, Runtime, Source
from warptile.formats import Format
from warptile.kernels.vulkan.abi import SHARED_SCALARS, scalars, translation_unit
from warptile.layouts import pack, upload
from warptile.layouts.fields import F32, U8
from warptile.weights import QuantTensor

ALL = list(formats.all_formats().values())
BODY = """\
layout(local_size_x = 64) in;
void main() {
    mark_executed();
    uint row = gl_GlobalInvocationID.x, chunk = gl_GlobalInvocationID.y;
    if (row >= P.rows) return;
    Chunk c = load_chunk(row, chunk, P.rows);
    [[unroll]] for (uint i = 0u; i < 8u; i++) {
        vec4 v = decode4(c, i);
        [[unroll]] for (uint j = 0u; j < 4u; j++) Y[(P.row0 + row) * P.k + chunk * 32u + 4u * i + j] = v[j];
    }
}
"""


INT8_VALUE = """    uint words[CODE_WORDS];
    put_codes(load_chunk(row, chunk, P.rows), words);
    take_codes(c, words);
    [[unroll]] for (uint i = 0u; i < 8u; i++) {
        int s = codes_s4(c, i);
        vec4 v = vec4((ivec4(s << 24, s << 16, s << 8, s)) >> 24) * SCALE - MINIMUM;
"""


def int8_text(format: Format) -> str:
    """The same through `put_codes`, `take_codes` and `codes_s4`: value = d * s - m."""
    layout = format.layout
    at = "[i / 4u]" if layout.groups_per_chunk == 2 else ""
    value = INT8_VALUE.replace("SCALE", f"c.d{at}").replace("MINIMUM", f"c.m{at}" if layout.signed_minimum else "0.0")
    start = "    [[unroll]] for (uint i = 0u; i < 8u; i++) {\n        vec4 v = decode4(c, i);\n"
    assert start in BODY
    return translation_unit(layout.glsl() + layout.glsl_int8(), BODY.replace(start, value))


def decode_on(
    device: Runtime, format: Format, blocks: U8, n: int, k: int, max_bytes: int | None = None, text: str = ""
) -> F32:
    """Every element of w[n, k] through `load_chunk` and `decode4`, or `text`; elements not written stay NaN."""
    text = text or translation_unit(format.layout.glsl(), BODY)
    binary = device.compile(Source("glsl", text, (), bindings=3, scalars=SHARED_SCALARS, workgroup=64))
    weights = upload(device, pack(format, blocks, n, k, max_bytes))
    x = device.upload(np.zeros(4, dtype=np.float32))
    y = device.guarded_buffer(n * k * 4)
    problem = Problem(format.name, n, k, 1)
    launches = [
        Launch(binary, (x, s.buffer, y), scalars(problem, s), ((s.rows + 63) // 64, k // 32, 1)) for s in weights.slices
    ]
    device.execute(launches)
    assert device.executed_ids() == [binary.id] * len(launches)
    assert device.guards_intact(y)
    out: F32 = device.download(y, np.float32, (n, k))
    device.free([x, y, *[s.buffer for s in weights.slices]])
    return out


def finite_blocks(format: Format, count: int) -> U8:
    """Random blocks whose values are all finite and none subnormal: what a device must get exactly."""
    blocks = random_blocks(format, 4 * count, seed=format.gguf_id)
    values = np.abs(format.decode(blocks))
    tiny = (values > 0) & (values < np.finfo(np.float32).tiny)
    blocks = blocks[np.isfinite(values).all(axis=1) & ~tiny.any(axis=1)]
    assert len(blocks) >= count
    return blocks[:count]


@pytest.mark.parametrize("format", ALL, ids=lambda f: f.name)
@pytest.mark.parametrize(("n", "blocks_a_row"), [(37, 3), (128, 2)])
def test_device_values_equal_the_host_decode(device: Runtime, format: Format, n: int, blocks_a_row: int) -> None:
    # Each product of scale and code has at most 24 significant bits, so no rounding can differ: equality, no tolerance.
    blocks = finite_blocks(format, n * blocks_a_row)
    k = blocks_a_row * format.block_size
    assert np.array_equal(decode_on(device, format, blocks, n, k), format.decode(blocks).reshape(n, k))


@pytest.mark.parametrize("format", ALL, ids=lambda f: f.name)
def test_int8_words_with_scale_and_minimum_are_the_values(device: Runtime, format: Format) -> None:
    n, k = 37, 2 * format.block_size
    blocks = finite_blocks(format, 2 * n)
    got = decode_on(device, format, blocks, n, k, text=int8_text(format))
    assert np.array_equal(got, format.decode(blocks).reshape(n, k))


@pytest.mark.parametrize("name", ["Q5_0", "Q6_K", "PTQ1_0", "MXFP4"])
def test_device_values_of_sliced_weights(device: Runtime, name: str) -> None:
    format = formats.by_name(name)
    n, k = 203, 2 * format.block_size
    blocks = finite_blocks(format, 2 * n)
    limit = format.layout.offsets(n, k)[1] * 4 // 2
    assert np.array_equal(decode_on(device, format, blocks, n, k, limit), format.decode(blocks).reshape(n, k))


def test_device_values_of_a_real_tensor(device: Runtime) -> None:
    tensor = QuantTensor.from_gguf(smollm2(), "blk.0.attn_k.weight")
    got = decode_on(device, tensor.format, tensor.blocks, *tensor.shape)
    assert np.array_equal(got, tensor.dequantize())


@pytest.mark.parametrize("format", ALL, ids=lambda f: f.name)
def test_decoder_names_nothing_a_kernel_could_define_differently(format: Format) -> None:
    text = format.layout.glsl()
    for needed in (
        "struct Chunk {",
        "Chunk load_chunk(uint row, uint chunk, uint rows)",
        "vec4 decode4(Chunk c, uint i)",
    ):
        assert text.count(needed) == 1
    assert "gl_" not in text
