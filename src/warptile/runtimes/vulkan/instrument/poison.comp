#version 450
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 1u;
layout(constant_id = 1) const uint WORDS = 1u;
layout(constant_id = 100) const uint BUILD_ID = 0u;
layout(push_constant) uniform Scalars { uint slot; } P;
layout(std430, set = 0, binding = 0) writeonly buffer ExecutedBuffer { uint executed[]; };
shared uint words[WORDS];
void main() {
    for (uint i = gl_LocalInvocationIndex; i < WORDS; i += THREADS) words[i] = 0x7fc17fc1u;
    barrier();
    // What is read here decides a store, so that the compiler keeps the words.
    if (gl_WorkGroupID == uvec3(0) && words[(gl_LocalInvocationIndex * 97u) % WORDS] == 0x7fc17fc1u) executed[P.slot] = BUILD_ID;
}
