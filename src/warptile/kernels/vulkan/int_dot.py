"""The dot product of four signed bytes with four, in GLSL: one instruction, or plain multiply-adds."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

DOTS = ("int_dot", "plain")

EXTENSIONS: Mapping[str, tuple[str, ...]] = MappingProxyType({"int_dot": ("GL_EXT_spirv_intrinsics",), "plain": ()})

# OpSDotKHR on two words of four signed bytes: opcode 4450, capabilities DotProductInput4x8BitPacked (6018) and
# DotProduct (6019). glslang has no built-in function for it.
DOT: Mapping[str, str] = MappingProxyType(
    {
        "int_dot": """\
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019], id = 4450)
int sdot4(int a, int b, spirv_literal int packed_format);
int dot4(int a, int b) { return sdot4(a, b, 0); }
""",
        "plain": """\
int dot4(int a, int b) {
    ivec4 p = ivec4(a << 24, a << 16, a << 8, a) >> 24;
    ivec4 q = ivec4(b << 24, b << 16, b << 8, b) >> 24;
    p *= q;
    return (p.x + p.y) + (p.z + p.w);
}
""",
    }
)


def features(dot: str) -> frozenset[str]:
    """Device features a dot needs."""
    return frozenset({"int_dot"}) if dot == "int_dot" else frozenset()
