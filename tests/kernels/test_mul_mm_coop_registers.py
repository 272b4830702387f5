"""`vulkan.mul_mm_coop` with weights in registers, on a device without such matrices: a unit made of shared memory.

The unit keeps a matrix in lanes as the kernel's comment says a 16x16x16 matrix is kept, so a weight that the kernel
decodes into the wrong lane, element or order along k shows in y. Whole-number inputs must come out equal to the bit.
"""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from numpy.typing import NDArray
from support.integer_weights import reference

from warptile import formats, kernels, layouts
from warptile.contracts import Problem, Runtime, Source
from warptile.kernels.vulkan.mul_mm_coop.tile import MulMmCoopTile
from warptile.proof.weights import exact_blocks

KERNEL = kernels.by_name("mul_mm_coop")
ONE_WARP = "operands=fp16,matrix=16x16x16,warps_n=1,warps_m=1,weights=registers"

UNIT = """
shared float unit_a[256], unit_b[256];
float16_t[8] unit_load(uint at, uint stride) {
    uint lane = gl_LocalInvocationIndex;
    float16_t[8] m;
    for (uint e = 0u; e < 8u; ++e) {
        uint row = lane / 4u + 8u * (e / 4u), k = 2u * (lane % 4u) + e % 2u + 8u * (e / 2u % 2u);
        m[e] = unpackFloat2x16(pool[at + row * stride + k / 8u][k % 8u / 2u])[k % 2u];
    }
    return m;
}
float[8] unit_zero() { return float[8](0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0); }
float[8] unit_multiply(float16_t[8] a, float16_t[8] b, float[8] c) {
    uint lane = gl_LocalInvocationIndex, g = lane / 4u, j = lane % 4u;
    for (uint e = 0u; e < 8u; ++e) {
        uint row = g + 8u * (e / 4u), k = 2u * j + e % 2u + 8u * (e / 2u % 2u);
        unit_a[row * 16u + k] = float(a[e]);
        unit_b[row * 16u + k] = float(b[e]);
    }
    barrier();
    for (uint e = 0u; e < 8u; ++e) {
        uint first = 8u * (e / 2u % 2u), second = 8u * (e / 4u);
        uint row = g + (ROW_STEP == 2u ? first : second), column = 2u * j + e % 2u + (ROW_STEP == 2u ? second : first);
        // A number of steps that the compiler does not know is a loop that it does not unroll.
        for (uint k = 0u; k < min(16u, P.k); ++k) c[e] += unit_a[row * 16u + k] * unit_b[column * 16u + k];
    }
    barrier();
    return c;
}
#define coopMatLoad(matrix, from, at, stride, order) matrix = unit_load(at, stride)
#define coopMatMulAdd(a, b, c) unit_multiply(a, b, c)
#define A_MATRIX float16_t[8]
#define B_MATRIX float16_t[8]
#define SUMS float[8]
"""


def emulated(source: Source) -> Source:
    """One warp of 32 lanes is the workgroup; its matrices are arrays."""
    text = re.sub(r"#define A_MATRIX.*\n#define B_MATRIX.*\n#define SUMS.*\n", lambda _: UNIT, source.text)
    assert text != source.text
    text = re.sub(r"#extension GL_KHR_(cooperative_matrix|memory_scope_semantics|shader_subgroup_basic).*\n", "", text)
    for name, plain in (
        ("SUMS(0.0)", "unit_zero()"),
        ("gl_SubgroupID", "0u"),
        ("gl_SubgroupInvocationID", "gl_LocalInvocationIndex"),
    ):
        text = text.replace(name, plain)
    return dataclasses.replace(source, text=text, subgroup=None, features=source.features - {"coopmat"})


@pytest.mark.parametrize(
    ("tile", "name", "n", "k", "m", "dtype"),
    [
        ("matrices_n=2,matrices_m=1,k_chunk=32", "Q4_K", 32, 256, 16, "fp32"),
        ("matrices_n=2,matrices_m=1,k_chunk=32,buffers=2", "Q5_1", 36, 160, 21, "fp16"),
        ("matrices_n=2,matrices_m=2,k_chunk=32,split_k=2", "Q8_0", 68, 160, 33, "fp32"),
        ("matrices_n=4,matrices_m=1,k_chunk=32,prefetch=0", "Q4_1", 68, 64, 3, "fp32"),
        ("matrices_n=2,matrices_m=1,k_chunk=128,prefetch=4", "Q4_0", 32, 160, 7, "fp32"),
        ("matrices_n=2,matrices_m=1,k_chunk=32,first=n", "Q6_K", 40, 256, 17, "fp32"),
        ("matrices_n=2,matrices_m=1,k_chunk=64,prefetch=2,buffers=2", "PTQ1_0", 32, 128, 5, "fp32"),
        # Scales of 1/4 and more: such a block is summed again, its rows in other units.
        ("matrices_n=2,matrices_m=1,k_chunk=64,buffers=2,decode=subnormal", "Q4_K", 32, 512, 17, "fp16"),
        ("matrices_n=2,matrices_m=1,k_chunk=32,decode=subnormal,split_k=2", "Q4_0", 36, 128, 8, "fp32"),
    ],
)
def test_every_lane_holds_the_weights_it_multiplies(
    device: Runtime, tile: str, name: str, n: int, k: int, m: int, dtype: str
) -> None:
    own = MulMmCoopTile.parse(f"{ONE_WARP},{tile}")
    problem = Problem(name, n, k, m, dtype, dtype)
    order = "rows" if m % 2 else "columns"
    source = KERNEL.source(own, problem, dataclasses.replace(device.limits(), matrix_order=order))
    binary = device.compile(emulated(source))
    found = formats.by_name(name)
    blocks = exact_blocks(found, n * k // found.block_size, np.random.default_rng(n + k))
    # Few activations are not 0, so that the sums, multiples of 1/4, are exact in fp16 too.
    rng = np.random.default_rng(m)
    x = rng.choice([-1.0, 1.0], (m, k)) * (rng.random((m, k)) < 0.05)
    x = x.astype({"fp32": np.float32, "fp16": np.float16}[dtype])
    weights = layouts.upload(device, layouts.pack(formats.by_name(name), blocks.reshape(-1), n, k))
    x_buffer, y_buffer = device.upload(x), device.upload(np.full((m, n), np.nan, x.dtype))
    device.execute(KERNEL.launch(binary, own, problem, x_buffer, weights, y_buffer))
    y = device.download(y_buffer, x.dtype, (m, n))
    device.free([x_buffer, y_buffer, *(piece.buffer for piece in weights.slices)])
    want = reference(name, blocks, n, k, x.astype(np.float32))
    assert dtype == "fp32" or np.abs(want).max() < 512
    np.testing.assert_array_equal(y, want.astype(x.dtype))


@pytest.mark.parametrize("name", ["Q4_K", "Q4_0", "Q4_1"])
def test_codes_as_subnormal_numbers_give_the_same_weights(device: Runtime, name: str) -> None:
    """Scales below 1/4, powers of two: every weight is exact, and no block is summed twice."""
    found, n, k, m = formats.by_name(name), 32, 256, 5
    own = MulMmCoopTile.parse(f"{ONE_WARP},matrices_n=2,matrices_m=1,k_chunk=64,buffers=2,decode=subnormal")
    problem = Problem(name, n, k, m)
    source = emulated(KERNEL.source(own, problem, dataclasses.replace(device.limits(), matrix_order="columns")))
    # Without the second time, a block that needed it would come out infinite.
    text = source.text.replace("time < 2u", "time < 1u")
    assert text != source.text
    binary = device.compile(dataclasses.replace(source, text=text))
    blocks = exact_blocks(found, n * k // found.block_size, np.random.default_rng(3))
    fields = found.split(blocks.reshape(-1, found.block_bytes))
    small = {name: _divided(a) if a.dtype == np.uint16 else a for name, a in fields.scales.items()}
    blocks = found.join(dataclasses.replace(fields, scales=small))
    x = np.random.default_rng(m).integers(-2, 3, (m, k)).astype(np.float32)
    weights = layouts.upload(device, layouts.pack(found, blocks.reshape(-1), n, k))
    x_buffer, y_buffer = device.upload(x), device.upload(np.full((m, n), np.nan, np.float32))
    device.execute(KERNEL.launch(binary, own, problem, x_buffer, weights, y_buffer))
    y = device.download(y_buffer, np.float32, (m, n))
    device.free([x_buffer, y_buffer, *(piece.buffer for piece in weights.slices)])
    np.testing.assert_array_equal(y, reference(name, blocks, n, k, x))


def _divided(halves: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """fp16 bits of numbers 128 times as small."""
    return (halves.view(np.float16) / np.float16(128)).view(np.uint16)
