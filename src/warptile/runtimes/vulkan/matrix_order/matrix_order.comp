#version 450
// What each lane holds of 16x16x16 matrices whose every value is its own index, element by element.
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_control_flow_attributes : enable
layout(local_size_x = 32) in;
layout(constant_id = 100) const uint BUILD_ID = 0u;
layout(push_constant) uniform Scalars { uint slot; } P;
layout(std430, set = 0, binding = 0) readonly buffer HalfBuffer { uvec4 halves[]; };
layout(std430, set = 0, binding = 1) readonly buffer FloatBuffer { float floats[]; };
layout(std430, set = 0, binding = 2) writeonly buffer FoundBuffer { int found[]; };
layout(std430, set = 0, binding = 3) writeonly buffer ExecutedBuffer { uint executed[]; };
shared uvec4 staged[32];

void main() {
    if (gl_LocalInvocationIndex == 0u) executed[P.slot] = BUILD_ID;
    const uint lane = gl_SubgroupInvocationID;
    staged[lane] = halves[lane];
    barrier();
    coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> b;
    coopMatLoad(b, staged, 0u, 2u, gl_CooperativeMatrixLayoutColumnMajor);
    coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> c;
    coopMatLoad(c, floats, 0u, 16u, gl_CooperativeMatrixLayoutRowMajor);
    if (b.length() != 8 || c.length() != 8) return;
    [[unroll]] for (uint e = 0u; e < 8u; ++e) {
        found[lane * 8u + e] = int(b[e]);
        found[256u + lane * 8u + e] = int(c[e]);
    }
}
