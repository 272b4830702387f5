#version 450
// Slots in the order of their experts, and the tiles of at most TILE_M of them that kernels work on; one workgroup.
//
// Order[0 .. slots) are slots by expert, ids that name none last (as expert number P.experts). Work[0 .. tiles): (expert,
// first place in Order, rows, 0) of each tile, by expert; rows is 0 past the last. Which of an expert's slots comes first
// is left open: a row's result does not depend on it.

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 0) const uint THREADS = 64u;
layout(constant_id = 1) const uint BUCKETS = 2u;
layout(constant_id = 100) const uint BUILD_ID = 0u;
layout(push_constant) uniform Scalars { uint slot; uint slots; uint experts; uint tile_m; uint tiles; } P;
layout(std430, set = 0, binding = 0) readonly buffer IdsBuffer { int Ids[]; };
layout(std430, set = 0, binding = 1) writeonly buffer OrderBuffer { uint Order[]; };
layout(std430, set = 0, binding = 2) writeonly buffer WorkBuffer { uvec4 Work[]; };
layout(std430, set = 0, binding = 3) writeonly buffer ExecutedBuffer { uint executed[]; };

shared uint count[BUCKETS];
shared uint next[BUCKETS];
shared uint first_tile[BUCKETS];
shared uint all_tiles;

uint bucket_of(uint s) {
    const int id = Ids[s];
    return id >= 0 && uint(id) < P.experts ? uint(id) : P.experts;
}

void main() {
    const uint lane = gl_LocalInvocationIndex;
    if (lane == 0u) executed[P.slot] = BUILD_ID;
    for (uint b = lane; b < BUCKETS; b += THREADS) count[b] = 0u;
    barrier();
    for (uint s = lane; s < P.slots; s += THREADS) atomicAdd(count[bucket_of(s)], 1u);
    barrier();
    if (lane == 0u) {
        uint place = 0u;
        uint tile = 0u;
        for (uint b = 0u; b < BUCKETS; ++b) {
            next[b] = place;
            first_tile[b] = tile;
            place += count[b];
            tile += (count[b] + P.tile_m - 1u) / P.tile_m;
        }
        all_tiles = tile;
    }
    barrier();
    for (uint b = lane; b < BUCKETS; b += THREADS)
        for (uint i = 0u; i * P.tile_m < count[b]; ++i)
            Work[first_tile[b] + i] = uvec4(b, next[b] + i * P.tile_m, min(count[b] - i * P.tile_m, P.tile_m), 0u);
    for (uint t = all_tiles + lane; t < P.tiles; t += THREADS) Work[t] = uvec4(0u);
    barrier();
    for (uint s = lane; s < P.slots; s += THREADS) Order[atomicAdd(next[bucket_of(s)], 1u)] = s;
}
