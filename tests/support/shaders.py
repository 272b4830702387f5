"""Small GLSL kernels for the runtime's tests."""

from __future__ import annotations

from warptile.contracts import Source

_HEAD = """#version 450
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint FACTOR = 1u;
layout(constant_id = 100) const uint BUILD_ID = 0u;
layout(push_constant) uniform Scalars { uint slot; uint n; uint steps; } P;
layout(std430, binding = 0) readonly buffer XBuffer { float X[]; };
layout(std430, binding = 1) buffer YBuffer { float Y[]; };
layout(std430, binding = 2) writeonly buffer ExecutedBuffer { uint executed[]; };
void main() {
    if (gl_WorkGroupID == uvec3(0) && gl_LocalInvocationIndex == 0u) executed[P.slot] = BUILD_ID;
    uint i = gl_GlobalInvocationID.x;
"""


def source(body: str, factor: int = 1, workgroup: int = 64, **more: object) -> Source:
    """A kernel of two buffers and the scalars n and steps."""
    constants = ((0, workgroup), (1, factor))
    return Source("glsl", _HEAD + body + "\n}\n", constants, 2, 2, workgroup, **more)  # type: ignore[arg-type]


SCALE = "if (i < P.n) Y[i] = X[i] * float(FACTOR);"
ADD = "if (i < P.n) Y[i] = X[i] + Y[i];"
SPIN = "float a = X[0]; for (uint s = 0u; s < P.steps; ++s) a = fma(a, 0.5, float(i)); if (i < P.n) Y[i] = a;"


def scale(factor: int, **more: object) -> Source:
    """y[i] = factor * x[i] for i < n."""
    return source(SCALE, factor, **more)  # type: ignore[arg-type]


def groups(n: int, workgroup: int = 64) -> tuple[int, int, int]:
    """Workgroups that cover n elements."""
    return (-(-n // workgroup), 1, 1)
