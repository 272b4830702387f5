#version 450
#extension GL_EXT_control_flow_attributes : enable
// Reads every uvec4 of X once. A workgroup reads STEPS * threads of them, neighbouring lanes neighbouring words.
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint STEPS = 32u;
layout(constant_id = 100) const uint BUILD_ID = 0u;
layout(push_constant) uniform Scalars { uint slot; uint width; } P;
layout(std430, set = 0, binding = 0) readonly buffer XBuffer { uvec4 X[]; };
layout(std430, set = 0, binding = 1) writeonly buffer SinkBuffer { uvec4 sink[]; };
layout(std430, set = 0, binding = 2) writeonly buffer ExecutedBuffer { uint executed[]; };
void main() {
    if (gl_WorkGroupID == uvec3(0) && gl_LocalInvocationIndex == 0u) executed[P.slot] = BUILD_ID;
    uint group = gl_WorkGroupID.y * P.width + gl_WorkGroupID.x;
    uint first = group * STEPS * gl_WorkGroupSize.x + gl_LocalInvocationIndex;
    uvec4 sum = uvec4(0u);
    [[unroll]] for (uint i = 0u; i < STEPS; ++i) sum += X[first + i * gl_WorkGroupSize.x];
    // Never true for random data, but the compiler cannot know: the loads stay.
    if (sum == uvec4(0x12345678u, 0x9abcdef0u, 0x0fedcba9u, 0x87654321u)) sink[0] = sum;
}
