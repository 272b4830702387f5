// y[m, n] = sum_k x[m, k] * w[n, k] on cooperative matrices of fp16, weights decoded to shared memory.
// W_OWNER threads decode a set of W_ROWS rows together: the block all of its rows, or each warp its own.
layout(local_size_x = THREADS) in;

const uint W_STAGE = W_SETS * W_ROWS * ROW;
const uint STAGE = X_STAGE + W_STAGE;
const uint PARTS = 4u / OCTETS;          // threads that share a row's chunk
const uint W_SLOTS = W_ROWS * CHUNKS * PARTS;

Octet w_ahead[W_EACH * OCTETS];
ScaleWords s_ahead[W_EACH];
uint w_owner, w_set, w_set_row;          // which of the owners' threads this is, its set, the set's first row in the tile

uint w_row(uint at) { return at % W_ROWS; }
uint w_chunk(uint at) { return (at / W_ROWS) / PARTS; }
uint w_octet(uint at) { return (at / W_ROWS) % PARTS * OCTETS; }

uint w_global_row(uint at) { return min(n0 + w_set_row + w_row(at), P.rows - 1u); }
uint w_global_chunk(uint k, uint at) { return min(k / 32u + w_chunk(at), P.k / 32u - 1u); }

void fetch_w(uint k) {
    [[unroll]] for (uint i = 0u; i < W_EACH; ++i) {
        uint at = i * W_OWNERS + w_owner, row = w_global_row(at), chunk = w_global_chunk(k, at);
        [[unroll]] for (uint q = 0u; q < OCTETS; ++q)
            w_ahead[i * OCTETS + q] = load_octet(row, chunk, w_octet(at) + q, P.rows);
        s_ahead[i] = load_scale_words(row, chunk, P.rows);
    }
}

void store_x(uint base) {
    [[unroll]] for (uint i = 0u; i < X_EACH; ++i) {
        uint at = i * THREADS + tid;
        if (X_EACH * THREADS == TILE_M * UNITS || at < TILE_M * UNITS)
            pool[base + at / UNITS * ROW + at % UNITS] = x_pairs(x_ahead[i]);
    }
}

void store_w(uint k, uint base) {
    [[unroll]] for (uint i = 0u; i < W_EACH; ++i) {
        uint at = i * W_OWNERS + w_owner;
        if (W_EACH * W_OWNERS == W_SLOTS || at < W_SLOTS) {
            Scale own = scale_of(s_ahead[i], w_global_row(at), w_global_chunk(k, at));
            uint to = base + X_STAGE + (w_set * W_ROWS + w_row(at)) * ROW + w_chunk(at) * 4u + w_octet(at);
            [[unroll]] for (uint q = 0u; q < OCTETS; ++q) {
                Octet o = w_ahead[i * OCTETS + q];
                uint j = w_octet(at) + q, first = octet4(o, j, 0u), second = octet4(o, j, 1u);
#if GROUPS_A_CHUNK == 2
                float d = j < 2u ? own.d[0] : own.d[1], m = j < 2u ? own.m[0] : own.m[1];
#else
                float d = own.d[0], m = own.m[0];
#endif
#if DECODE_FP16
                uint s = scale_word(d, m);
                pool[to + q] = uvec4(weight_pairs(first, s), weight_pairs(second, s));
#else
                pool[to + q] = uvec4(weight_pairs(first, d, m), weight_pairs(second, d, m));
#endif
            }
        }
    }
}

void fetch(uint k) { fetch_x(k); fetch_w(k); }
void store(uint k, uint base) { store_x(base); store_w(k, base); }

SUMS sums[MATRICES_M * MATRICES_N];

void multiply(uint base, uint x_row, uint w_row) {
    [[unroll]] for (uint kk = 0u; kk < K_CHUNK / MATRIX_K; ++kk) {
        A_MATRIX a[MATRICES_M];
        [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i)
            coopMatLoad(a[i], pool, base + (x_row + i * MATRIX_M) * ROW + kk * (MATRIX_K / 8u), ROW,
                        gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j) {
            B_MATRIX b;
            coopMatLoad(b, pool, base + X_STAGE + (w_row + j * MATRIX_N) * ROW + kk * (MATRIX_K / 8u), ROW,
                        gl_CooperativeMatrixLayoutColumnMajor);
            [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i)
                sums[i * MATRICES_N + j] = coopMatMulAdd(a[i], b, sums[i * MATRICES_N + j]);
        }
    }
}

// Sums leave straight to y where all of a tile lies in it and rows are whole vectors, else a matrix at a time through the
// warp's own part of shared memory. The calls are written out: an index that is no constant sends the sums to memory.
void leave_part(uint from, uint m_first, uint n_first) {
    subgroupMemoryBarrierShared();
    subgroupBarrier();
    for (uint e = gl_SubgroupInvocationID; e < MATRIX_M * MATRIX_N; e += SUBGROUP) {
        uint m = m_first + e / MATRIX_N, n = n_first + e % MATRIX_N;
        if (m < P.m && n < P.rows)
            Y[gl_WorkGroupID.z * P.part_y + m * P.y_stride + P.row0 + n] =
                Y_TYPE(uintBitsToFloat(pool[from + e / 4u][e % 4u]));
    }
    subgroupMemoryBarrierShared();
    subgroupBarrier();
}
#define LEAVE_WHOLE(i, j) coopMatStore(Y_SUMS(sums[i * MATRICES_N + j]), Y, y_at + i * MATRIX_M * P.y_stride + \
    j * MATRIX_N, P.y_stride, gl_CooperativeMatrixLayoutRowMajor);
#define LEAVE_PART(i, j) coopMatStore(WIDE_SUMS(sums[i * MATRICES_N + j]), pool, mine, MATRIX_N / 4u, \
    gl_CooperativeMatrixLayoutRowMajor); leave_part(mine, first_m + i * MATRIX_M, first_n + j * MATRIX_N);

void main() {
    mark_executed();
    tid = gl_LocalInvocationIndex;
    const uint warp = gl_SubgroupID, lane = gl_SubgroupInvocationID;
    m0 = (M_FIRST ? gl_WorkGroupID.x : gl_WorkGroupID.y) * TILE_M;
    n0 = (M_FIRST ? gl_WorkGroupID.y : gl_WorkGroupID.x) * TILE_N;
    const uint x_row = warp % WARPS_M * (MATRICES_M * MATRIX_M);
    const uint w_rows = MATRICES_N * MATRIX_N;
    w_owner = W_SETS == 1u ? tid : lane;
    w_set = W_SETS == 1u ? 0u : warp;
    w_set_row = W_SETS == 1u ? 0u : warp / WARPS_M * w_rows;
    const uint w_row = W_SETS == 1u ? warp / WARPS_M * w_rows : warp * w_rows;
    const uint k0 = gl_WorkGroupID.z * P.part_k;
    k_end = min(k0 + P.part_k, P.k);

    [[unroll]] for (uint i = 0u; i < MATRICES_M * MATRICES_N; ++i) sums[i] = SUMS(0.0);
    if (PREFETCH > 0u) fetch(k0);
#if BUFFERS == 2
    if (PREFETCH == 0u) fetch(k0);
    store(k0, 0u);
    if (PREFETCH > 0u) fetch(k0 + K_CHUNK);
    uint base = 0u;
    for (uint k = k0; k < k_end; k += K_CHUNK) {
        barrier();
        if (k + K_CHUNK < k_end) {
            if (PREFETCH == 0u) fetch(k + K_CHUNK);
            store(k + K_CHUNK, STAGE - base);
            if (PREFETCH > 0u) fetch(k + 2u * K_CHUNK);
        }
        multiply(base, x_row, w_row);
        base = STAGE - base;
    }
#else
    for (uint k = k0; k < k_end; k += K_CHUNK) {
        if (PREFETCH == 0u) fetch(k);
        barrier();
        store(k, 0u);
        barrier();
        if (PREFETCH > 0u && k + K_CHUNK < k_end) fetch(k + K_CHUNK);
        multiply(0u, x_row, w_row);
    }
#endif

    const uint first_m = m0 + x_row, first_n = n0 + warp / WARPS_M * w_rows;
    if (m0 + TILE_M <= P.m && n0 + TILE_N <= P.rows && (P.y_stride | P.row0 | P.part_y) % 8u == 0u) {
        const uint y_at = gl_WorkGroupID.z * P.part_y + first_m * P.y_stride + P.row0 + first_n;
        EACH_SUM(LEAVE_WHOLE)
    } else {
        barrier();
        const uint mine = warp * (MATRIX_M * MATRIX_N / 4u);
        EACH_SUM(LEAVE_PART)
    }
}
