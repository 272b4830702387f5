"""int8 `vulkan.mul_mm_coop` on a device without such matrices: a 16x16x32 unit made of shared memory.

The unit keeps sums in lanes in the order that `Limits.matrix_order` names, so that a scale that meets the wrong sum
shows in y, as does a group that is multiplied with its neighbour's codes. One warp is the workgroup.
"""

from __future__ import annotations

import dataclasses
import re

import pytest

from warptile import kernels
from warptile.contracts import Kernel, Limits, Problem, Runtime, Source, Tile
from warptile.contracts.limits import CooperativeMatrix
from warptile.kernels.vulkan.mul_mm_coop.tile import MulMmCoopTile
from warptile.proof import prove

KERNEL = kernels.by_name("mul_mm_coop")
MATRICES = (CooperativeMatrix(16, 16, 32, "s8", "s32"), CooperativeMatrix(16, 16, 16, "fp16", "fp32"))
ONE_WARP = "operands=int8,matrix=16x16x32,warps_n=1,warps_m=1,weights=warp"

UNIT = """
shared int unit_a[512], unit_b[512];
shared float unit_c[256];
// Element e of a lane, as its place in the matrix row by row.
uint unit_at(uint e) {
    uint lane = gl_LocalInvocationIndex, first = 8u * (e / 2u % 2u), second = 8u * (e / 4u);
    uint row = lane / 4u + (ROW_STEP == 2u ? first : second), column = 2u * (lane % 4u) + e % 2u;
    return row * 16u + column + (ROW_STEP == 2u ? second : first);
}
// (line, place in it) of element e in memory: lines are rows, or columns where the order is 1.
uvec2 unit_in(uint at, uint columns, uint order) {
    return order == 0u ? uvec2(at / columns, at % columns) : uvec2(at % columns, at / columns);
}
uvec2 unit_line(int[16] m, uint e, uint order) { return unit_in(gl_LocalInvocationIndex * 16u + e, 32u, order); }
uvec2 unit_line(uint[16] m, uint e, uint order) { return unit_in(gl_LocalInvocationIndex * 16u + e, 16u, order); }
uvec2 unit_line(float[8] m, uint e, uint order) { return unit_in(unit_at(e), 16u, order); }
uvec2 unit_line(int[8] m, uint e, uint order) { return unit_in(unit_at(e), 16u, order); }
uvec2 unit_line(vec2[4] m, uint e, uint order) { return unit_in(gl_LocalInvocationIndex * 8u + e, 16u, order); }
uvec2 unit_line(uvec2[4] m, uint e, uint order) { return unit_in(gl_LocalInvocationIndex * 8u + e, 16u, order); }
uint unit_count(int[16] m) { return 16u; }
uint unit_count(uint[16] m) { return 16u; }
uint unit_count(float[8] m) { return 8u; }
uint unit_count(vec2[4] m) { return 8u; }
uint unit_count(uvec2[4] m) { return 8u; }
uint unit_per(int[16] m, uvec4 v) { return 16u; }
uint unit_per(uint[16] m, uvec4 v) { return 16u; }
uint unit_per(float[8] m, vec2 v) { return 2u; }
uint unit_per(float[8] m, float v) { return 1u; }
uint unit_per(vec2[4] m, uvec4 v) { return 8u; }
uint unit_per(uvec2[4] m, uvec4 v) { return 8u; }
int unit_byte(uvec4 v, uint at) { return bitfieldExtract(int(v[at / 4u % 4u]), int(at % 4u * 8u), 8); }
float unit_half(uvec4 v, uint at) { return unpackHalf2x16(v[at / 2u % 4u])[at % 2u]; }
void unit_put(inout int[16] m, uint e, uvec4 v, uint at) { m[e] = unit_byte(v, at); }
void unit_put(inout uint[16] m, uint e, uvec4 v, uint at) { m[e] = uint(unit_byte(v, at)); }
void unit_put(inout float[8] m, uint e, vec2 v, uint at) { m[e] = v[at % 2u]; }
void unit_put(inout float[8] m, uint e, float v, uint at) { m[e] = v; }
void unit_put(inout vec2[4] m, uint e, uvec4 v, uint at) { m[e / 2u][e % 2u] = unit_half(v, at); }
void unit_put(inout uvec2[4] m, uint e, uvec4 v, uint at) { m[e / 2u][e % 2u] = floatBitsToUint(unit_half(v, at)); }
int[8] unit_whole(int z) { return int[8](z, z, z, z, z, z, z, z); }
float[8] unit_sums() { return float[8](0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0); }
int[8] coopMatMulAdd(int[16] a, uint[16] b, int[8] c) {
    barrier();
    for (uint e = 0u; e < 16u; ++e) {
        unit_a[gl_LocalInvocationIndex * 16u + e] = a[e];
        unit_b[gl_LocalInvocationIndex * 16u + e] = int(b[e]);
    }
    barrier();
    for (uint e = 0u; e < 8u; ++e) {
        uint row = unit_at(e) / 16u, column = unit_at(e) % 16u;
        // A number of steps that the compiler does not know is a loop that it does not unroll.
        for (uint k = 0u; k < min(32u, P.k); ++k) c[e] += unit_a[row * 32u + k] * unit_b[k * 16u + column];
    }
    return c;
}
float[8] coopMatMulAdd(vec2[4] a, uvec2[4] b, float[8] c) {
    barrier();
    for (uint e = 0u; e < 8u; ++e) {
        unit_a[gl_LocalInvocationIndex * 8u + e] = floatBitsToInt(a[e / 2u][e % 2u]);
        unit_b[gl_LocalInvocationIndex * 8u + e] = int(b[e / 2u][e % 2u]);
    }
    barrier();
    for (uint e = 0u; e < 8u; ++e) {
        uint row = unit_at(e) / 16u, column = unit_at(e) % 16u;
        for (uint k = 0u; k < min(16u, P.k); ++k)
            c[e] += intBitsToFloat(unit_a[row * 16u + k]) * intBitsToFloat(unit_b[k * 16u + column]);
    }
    return c;
}
#define coopMatLoad(m, from, at, stride, order) \\
    for (uint e_ = 0u; e_ < unit_count(m); ++e_) { \\
        uvec2 l_ = unit_line(m, e_, order); \\
        unit_put(m, e_, from[(at) + l_.x * (stride) + l_.y / unit_per(m, from[0])], l_.y); \\
    }
#define coopMatStore(m, to, at, stride, order) \\
    for (uint e_ = 0u; e_ < 8u; ++e_) unit_store_##to((m)[e_], at, stride, unit_line(m, e_, order));
#define A_MATRIX int[16]
#define B_MATRIX uint[16]
#define WHOLE_SUMS int[8]
#define SUMS float[8]
"""
MINIMUMS = "#define MINIMUM_A vec2[4]\n#define MINIMUM_B uvec2[4]\n"
STORES = """
void unit_store_Y(float v, uint at, uint stride, uvec2 l) { Y[at + l.x * stride + l.y] = Y_TYPE(v); }
"""
STORE_RAW = "void unit_store_raw(int v, uint at, uint stride, uvec2 l) { raw[at + l.x * stride + l.y] = v; }\n"
STORE_POOL = """
void unit_store_w_stage(float v, uint at, uint stride, uvec2 l) {
    w_stage[at + l.x * stride + l.y / 4u][l.y % 4u] = floatBitsToUint(v);
}
"""


def emulated(source: Source) -> Source:
    """One warp of 32 lanes is the workgroup; its matrices are arrays."""
    named = r"#define A_MATRIX.*\n#define B_MATRIX.*\n#define WHOLE_SUMS.*\n#define SUMS.*\n"
    text, found = re.subn(named, lambda _: UNIT + STORES, source.text)
    assert found == 1
    text = re.sub(r"#define MINIMUM_A.*\n#define MINIMUM_B.*\n", MINIMUMS, text)
    text = re.sub(r"(shared int raw\[.*\n)", lambda hit: hit[1] + STORE_RAW, text)
    text = text.replace("void leave_part", STORE_POOL + "void leave_part")
    text = re.sub(r"#extension GL_KHR_(cooperative_matrix|memory_scope_semantics|shader_subgroup_basic).*\n", "", text)
    for name, plain in (
        ("WHOLE_SUMS(", "unit_whole("),
        ("SUMS(0.0)", "unit_sums()"),
        ("subgroupMemoryBarrierShared(); subgroupBarrier()", "barrier()"),
        ("subgroupMemoryBarrierShared();\n    subgroupBarrier()", "barrier()"),
        ("gl_SubgroupID", "0u"),
        ("gl_SubgroupInvocationID", "gl_LocalInvocationIndex"),
        ("gl_CooperativeMatrixLayoutRowMajor", "0u"),
        ("gl_CooperativeMatrixLayoutColumnMajor", "1u"),
    ):
        text = text.replace(name, plain)
    return dataclasses.replace(source, text=text, subgroup=None, features=source.features - {"coopmat"})


class Emulated:
    """The kernel, on any device, as one that has the matrices and a known order."""

    name, runtime, tile_type = KERNEL.name, KERNEL.runtime, KERNEL.tile_type

    def __init__(self, order: str) -> None:
        self.order = order

    def __getattr__(self, name: str) -> object:
        return getattr(KERNEL, name)

    def limits(self, limits: Limits) -> Limits:
        sizes = {"subgroup": 32, "subgroup_sizes": (32,), "features": limits.features | {"coopmat"}}
        return dataclasses.replace(limits, cooperative_matrices=MATRICES, matrix_order=self.order, **sizes)  # type: ignore[arg-type]

    def broken_rules(self, tile: Tile, problem: Problem, limits: Limits) -> object:
        return KERNEL.broken_rules(tile, problem, self.limits(limits))

    def source(self, tile: Tile, problem: Problem, limits: Limits) -> Source:
        return emulated(KERNEL.source(tile, problem, self.limits(limits)))


def emulation(order: str) -> Kernel:
    return Emulated(order)  # type: ignore[return-value]


CASES = {
    "lanes, minimums": ("matrices_m=2,k_chunk=64,scales=lanes,x_block=256", "Q4_K", 20, 512, 21, "columns"),
    "lanes, groups of 16, parts": (
        "matrices_m=1,k_chunk=32,scales=lanes,x_block=32,split_k=2", "Q6_K", 36, 256, 17, "rows",
    ),
    "broadcast, private": (
        "matrices_m=1,k_chunk=128,scales=broadcast,x_block=64,activations=private", "Q2_K", 17, 256, 3, "rows",
    ),
    "raw, groups of 16": ("matrices_m=3,k_chunk=64,scales=raw,x_block=256,decode=fp32,pad=0", "Q3_K", 33, 512, 50, ""),
    "raw, private": (
        "matrices_m=1,k_chunk=128,scales=raw,x_block=128,decode=fp32,activations=private", "Q4_1", 19, 384, 18, "",
    ),
}  # fmt: skip


def tile(text: str) -> MulMmCoopTile:
    decode = "" if "decode" in text else ",decode=fp16"
    return MulMmCoopTile.parse(f"{ONE_WARP},matrices_n={1 + ('split' in text)},{text}{decode}")


@pytest.mark.parametrize("case", CASES)
def test_proof(device: Runtime, case: str) -> None:
    """Tails along m, n and k, groups of 16 in a matrix of k = 32, both orders, minimums both ways."""
    text, name, n, k, m, order = CASES[case]
    verdict = prove(device, emulation(order), tile(text), Problem(name, n, k, m), "quick", 0)
    assert verdict.right, (verdict.failed, verdict.detail)


def test_without_the_barrier_at_the_end_of_a_step_the_proof_says_wrong(device: Runtime) -> None:
    """What the source document's kernel lacked at first: a step's data is overwritten while others still read it."""

    class Hasty(Emulated):
        def source(self, tile: Tile, problem: Problem, limits: Limits) -> Source:
            found = super().source(tile, problem, limits)
            text, count = re.subn(r"SYNC; +// every warp has read what the step before staged\n", "", found.text)
            assert count == 1
            return dataclasses.replace(found, text=text)

    own = tile("matrices_m=1,k_chunk=64,scales=broadcast,x_block=64")
    verdict = prove(device, Hasty(""), own, Problem("Q8_0", 16, 256, 16), "quick", 0)  # type: ignore[arg-type]
    assert not verdict.right
    assert verdict.failed in ("nmse", "bound")
