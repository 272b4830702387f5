#version 450
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 1u;
layout(constant_id = 1) const uint WORDS = 1u;
layout(constant_id = 100) const uint BUILD_ID = 0u;
layout(push_constant) uniform Scalars { uint slot; uint together; } P;
layout(std430, set = 0, binding = 0) buffer MetBuffer { uint met[2]; };
layout(std430, set = 0, binding = 1) writeonly buffer ExecutedBuffer { uint executed[]; };
shared uint words[WORDS];
void main() {
    for (uint i = gl_LocalInvocationIndex; i < WORDS; i += THREADS) words[i] = 0x7fc17fc1u;
    barrier();
    // What is read here decides a store, so that the compiler keeps the words.
    const bool kept = words[(gl_LocalInvocationIndex * 97u) % WORDS] == 0x7fc17fc1u;
    if (gl_WorkGroupID == uvec3(0) && kept) executed[P.slot] = BUILD_ID;
    // Workgroups wait until all have begun, so that no thread of a software device runs two and leaves another none.
    if (gl_LocalInvocationIndex == 0u && P.together > 0u) {
        atomicAdd(met[0], 1u);
        uint turns = 0u;
        while (turns < 1u << 25 && atomicOr(met[0], 0u) < P.together) ++turns;
        if (atomicOr(met[0], 0u) < P.together) atomicOr(met[1], 1u);
    }
}
