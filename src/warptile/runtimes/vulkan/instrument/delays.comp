// What a delayed build calls: workgroups take each other's places, the warps of a workgroup too, and each warp waits at
// barriers for as long as a hash of its place says. Workgroups beyond the launch's own keep the device busy and do nothing.
layout(local_size_x = 1) in;
layout(std430, set = 0, binding = DEBUG_BINDING) buffer WarptileDebug { uint D[]; };

#define STARTED 3u
#define FINISHED 4u
#define RAN 5u
#define INVOCATIONS 6u
#define GRID 8u
#define SEED 11u
#define FACTOR 12u
#define SHIFT 13u
#define TOTAL 14u
#define ROTATION 15u
#define SPINS 32u
#define WARP 33u

uint position, local_index, pauses;

uint hash(const uint value) {
    uint h = value * 2654435761u;
    h = (h ^ (h >> 15)) * 2246822519u;
    h = (h ^ (h >> 13)) * 3266489917u;
    return h ^ (h >> 16);
}

// Of four pauses three are none: warps must come apart, not all be late.
void pause() {
    const uint h = hash(D[SEED] + hash(position * 64u + local_index / D[WARP]) + pauses);
    pauses += 1u;
    const uint spins = (h & 3u) == 0u ? (h >> 2) % (D[SPINS] + 1u) : 0u;
    for (uint i = 0u; i < spins; ++i) if (atomicOr(D[SEED], 0u) != D[SEED]) break;
}

// size: invocations of a workgroup along x; one_axis: whether it has no other axis. Whether this workgroup has work.
bool enter(const uint id, const uint size, const bool one_axis) {
    const uint linear = gl_WorkGroupID.x + gl_NumWorkGroups.x * (gl_WorkGroupID.y + gl_NumWorkGroups.y * gl_WorkGroupID.z);
    position = (linear * D[FACTOR] + D[SHIFT]) % D[TOTAL];
    local_index = gl_LocalInvocationIndex;
    if (one_axis && size % D[WARP] == 0u) local_index = (local_index + D[ROTATION] * D[WARP]) % size;
    pauses = 0u;
    const bool real = linear < D[TOTAL] && position < D[GRID] * D[GRID + 1u] * D[GRID + 2u];
    if (real && gl_LocalInvocationIndex == 0u) {
        atomicAdd(D[STARTED], 1u);
        atomicExchange(D[RAN], id);
    }
    if (!real) position = linear;
    pause();
    return real;
}

void leave() {
    atomicAdd(D[INVOCATIONS], 1u);
    if (gl_LocalInvocationIndex == 0u) atomicAdd(D[FINISHED], 1u);
}

uvec3 grid() { return uvec3(D[GRID], D[GRID + 1u], D[GRID + 2u]); }
uvec3 group_of() {
    const uvec3 g = grid();
    return uvec3(position % g.x, position / g.x % g.y, position / g.x / g.y);
}
uint index_of() { return local_index; }
uvec3 local_of(const bool one_axis) { return one_axis ? uvec3(local_index, 0u, 0u) : gl_LocalInvocationID; }
uvec3 global_of(const uvec3 size, const bool one_axis) { return group_of() * size + local_of(one_axis); }
uint subgroup_of() { return local_index / D[WARP]; }

void main() {
    if (enter(0u, 0u, true)) {
        pause();
        D[index_of() + subgroup_of()] = global_of(uvec3(0u), false).x;
        leave();
    }
}
