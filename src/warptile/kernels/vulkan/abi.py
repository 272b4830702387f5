"""The interface every GLSL kernel shares: bindings, push constants, the executed-id write.

Bindings: 0 X (activations), 1 W (packed weight words), 2 Y (outputs), last the runtime's executed ids.
Scalars, 32-bit words after the runtime's slot: m, rows, k, row0, y_stride, plane[6], then a kernel's own.
"""

from __future__ import annotations

from warptile.contracts import Problem, WeightSlice

PLANES = 6
BUILD_ID_CONSTANT = 100
SHARED_SCALARS = 5 + PLANES

_HEADER = """\
#version 450
#extension GL_EXT_control_flow_attributes : enable
{extensions}
layout(constant_id = {build_id}) const uint BUILD_ID = 0u;
layout(push_constant) uniform Scalars {{
    uint slot;
    uint m;
    uint rows;
    uint k;
    uint row0;
    uint y_stride;
    uint plane[{planes}];
{own}}} P;
layout(std430, set = 0, binding = 0) readonly buffer XBuffer {{ {x_type} X[]; }};
layout(std430, set = 0, binding = 1) readonly buffer WBuffer {{ uint W[]; }};
layout(std430, set = 0, binding = 2) {y_access}buffer YBuffer {{ {y_type} Y[]; }};
layout(std430, set = 0, binding = {executed}) writeonly buffer ExecutedBuffer {{ uint executed[]; }};
void mark_executed() {{
    if (gl_WorkGroupID == uvec3(0) && gl_LocalInvocationIndex == 0u) executed[P.slot] = BUILD_ID;
}}
"""


def translation_unit(
    decoder: str,
    body: str,
    *,
    x_type: str = "vec4",
    bindings: int = 3,
    extensions: tuple[str, ...] = (),
    own_scalars: tuple[str, ...] = (),
    y_access: str = "writeonly ",
    y_type: str = "float",
) -> str:
    """One GLSL translation unit: header, the layout's decoder (`Layout.glsl()`), the kernel's body.

    own_scalars: names of the kernel's extra uint push constants. y_access: "writeonly ", or "" to read Y too.
    """
    header = _HEADER.format(
        extensions="".join(f"#extension {name} : require\n" for name in extensions),
        build_id=BUILD_ID_CONSTANT,
        planes=PLANES,
        own="".join(f"    uint {name};\n" for name in own_scalars),
        x_type=x_type,
        y_access=y_access,
        y_type=y_type,
        executed=bindings,
    )
    return header + decoder + body


def scalars(problem: Problem, piece: WeightSlice, *own: int) -> tuple[int, ...]:
    """The push-constant words of one dispatch over one weight slice."""
    planes = piece.planes + (0,) * (PLANES - len(piece.planes))
    return (problem.m, piece.rows, problem.k, piece.row0, problem.n, *planes, *own)
