#version 450
// Activations X[m, k] to blocks of 32 in Q[m][k / 32][9]: eight words of four int8 codes each, then the fp32 scale.
//
// scale = max|x| / 127, code = round(x / scale): |code| <= 127, |x - scale * code| <= scale / 2 but for roundings.
// A block of zeros has scale 0; one that holds a value that is not finite has scale NaN. One invocation a block.

#extension GL_EXT_control_flow_attributes : enable

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 0) const uint THREADS = 64u;
layout(constant_id = 100) const uint BUILD_ID = 0u;
layout(push_constant) uniform Scalars { uint slot; uint blocks; } P;
layout(std430, set = 0, binding = 0) readonly buffer XBuffer { vec4 X[]; };
layout(std430, set = 0, binding = 1) writeonly buffer QBuffer { uint Q[]; };
layout(std430, set = 0, binding = 2) writeonly buffer ExecutedBuffer { uint executed[]; };

void main() {
    if (gl_WorkGroupID == uvec3(0) && gl_LocalInvocationIndex == 0u) executed[P.slot] = BUILD_ID;
    const uint block = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * THREADS + gl_LocalInvocationIndex;
    if (block >= P.blocks) return;
    vec4 x[8];
    vec4 top = vec4(0.0);
    bool finite = true;
    [[unroll]] for (uint i = 0u; i < 8u; ++i) {
        x[i] = X[8u * block + i];
        top = max(top, abs(x[i]));
        finite = finite && all(lessThan(floatBitsToUint(x[i]) & 0x7fffffffu, uvec4(0x7f800000u)));
    }
    // A product is rounded correctly where a quotient need not be: a block whose largest value is 127 has scale 1.
    const float scale = max(max(top.x, top.y), max(top.z, top.w)) * (1.0 / 127.0);
    // Below the smallest normal number its inverse may be infinite: such a block counts as zero.
    const float inverse = scale >= 1.17549435e-38 ? 1.0 / scale : 0.0;
    [[unroll]] for (uint i = 0u; i < 8u; ++i) {
        const uvec4 code = uvec4(ivec4(clamp(roundEven(x[i] * inverse), -127.0, 127.0))) & 255u;
        Q[9u * block + i] = code.x | (code.y << 8) | (code.z << 16) | (code.w << 24);
    }
    Q[9u * block + 8u] = finite ? floatBitsToUint(scale) : 0x7fc00000u;
}
