// y[m, n] = sum_k x[m, k] * w[n, k] for few m: lanes run along n, SPLIT_K parts of the workgroup share the chunks of k,
// and part 0 adds the others' sums in order of their number, so that repeated runs agree to the bit.
layout(local_size_x = LANES_N * SPLIT_K) in;

#if SPLIT
shared float sums[(SPLIT_K - 1u) * THREAD_M * THREAD_N * LANES_N];
#endif

void main() {
    mark_executed();
    BEGIN_TILE
    const uint lane = gl_LocalInvocationID.x % LANES_N;
    const uint part = gl_LocalInvocationID.x / LANES_N;
    const uint step = LANES_N * LOAD_N;
    const uint block = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    const uint first = block * LANES_N * THREAD_N + lane * LOAD_N;
    const uint m0 = FIRST_TOKEN(gl_WorkGroupID.z);

    start_tile(first, step);
    for (uint chunk = part; chunk < TILE_CHUNKS; chunk += SPLIT_K) multiply_chunk(chunk, m0);
#if SPLIT
    const uint tile = THREAD_M * THREAD_N;
    if (part != 0u)
        [[unroll]] for (uint a = 0u; a < tile; ++a) sums[((part - 1u) * tile + a) * LANES_N + lane] = acc[a];
    barrier();
    if (part != 0u) return;
    for (uint p = 0u; p < SPLIT_K - 1u; ++p)
        [[unroll]] for (uint a = 0u; a < tile; ++a) acc[a] += sums[(p * tile + a) * LANES_N + lane];
#endif
    store_tile(first, step, m0);
}
