// y[m, n] = sum_k x[m, k] * w[n, k] with no shared memory: a lane owns THREAD_M x THREAD_N of y, lanes run along n.
layout(local_size_x = LANES) in;

void main() {
    mark_executed();
    BEGIN_TILE
    const uint block_n = M_FIRST ? gl_WorkGroupID.y : gl_WorkGroupID.x;
    const uint block_m = M_FIRST ? gl_WorkGroupID.x : gl_WorkGroupID.y;
    const uint step = LANES * LOAD_N;
    const uint first = block_n * LANES * THREAD_N + gl_LocalInvocationID.x * LOAD_N;
    const uint m0 = FIRST_TOKEN(block_m);

    start_tile(first, step);
    for (uint chunk = 0u; chunk < TILE_CHUNKS; ++chunk) multiply_chunk(chunk, m0);
    store_tile(first, step, m0);
}
