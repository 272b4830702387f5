#version 450
// Eight independent vec4 chains of fused multiply-adds in registers. With stop = 1 it only stores its id.
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint STEPS = 512u;
layout(constant_id = 100) const uint BUILD_ID = 0u;
layout(push_constant) uniform Scalars { uint slot; uint stop; } P;
layout(std430, set = 0, binding = 0) readonly buffer XBuffer { vec4 X[]; };
layout(std430, set = 0, binding = 1) writeonly buffer SinkBuffer { vec4 sink[]; };
layout(std430, set = 0, binding = 2) writeonly buffer ExecutedBuffer { uint executed[]; };
void main() {
    if (gl_WorkGroupID == uvec3(0) && gl_LocalInvocationIndex == 0u) executed[P.slot] = BUILD_ID;
    if (P.stop == 1u) return;
    vec4 a = vec4(float(gl_LocalInvocationIndex) * 1e-3 + 1.0), b = X[0] + vec4(0.5);
    vec4 c0 = a, c1 = a + 1.0, c2 = a + 2.0, c3 = a + 3.0, c4 = a + 4.0, c5 = a + 5.0, c6 = a + 6.0, c7 = a + 7.0;
    for (uint i = 0u; i < STEPS; ++i) {
        c0 = fma(c0, b, a); c1 = fma(c1, b, a); c2 = fma(c2, b, a); c3 = fma(c3, b, a);
        c4 = fma(c4, b, a); c5 = fma(c5, b, a); c6 = fma(c6, b, a); c7 = fma(c7, b, a);
    }
    vec4 sum = ((c0 + c1) + (c2 + c3)) + ((c4 + c5) + (c6 + c7));
    if (sum.x + sum.y + sum.z + sum.w == -1.0) sink[0] = sum;
}
