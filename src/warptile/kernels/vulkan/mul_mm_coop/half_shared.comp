// y[m, n] = sum_k x[m, k] * w[n, k] on cooperative matrices of fp16, weights decoded to shared memory.
// W_OWNER threads decode a set of W_ROWS rows together: the block all of its rows, or each warp its own.
layout(local_size_x = THREADS) in;

const uint W_STAGE = W_SETS * W_ROWS * ROW;
const uint STAGE = X_STAGE + W_STAGE;
const uint PARTS = 4u / OCTETS;          // threads that share a row's chunk
const uint W_SLOTS = W_ROWS * CHUNKS * PARTS;

struct WUnit { Octet o[OCTETS]; Scale s; };
WUnit w_ahead[W_EACH];
uint w_owner, w_set, w_set_row;          // which of the owners' threads this is, its set, the set's first row in the tile

uint w_row(uint at) { return at % W_ROWS; }
uint w_chunk(uint at) { return (at / W_ROWS) / PARTS; }
uint w_octet(uint at) { return (at / W_ROWS) % PARTS * OCTETS; }

void fetch_w(uint k) {
    [[unroll]] for (uint i = 0u; i < W_EACH; ++i) {
        uint at = i * W_OWNERS + w_owner;
        uint row = min(n0 + w_set_row + w_row(at), P.rows - 1u);
        uint chunk = min(k / 32u + w_chunk(at), P.k / 32u - 1u);
        [[unroll]] for (uint q = 0u; q < OCTETS; ++q)
            w_ahead[i].o[q] = load_octet(row, chunk, w_octet(at) + q, P.rows);
        w_ahead[i].s = read_scale(row, chunk);
    }
}

void store_x(uint base) {
    [[unroll]] for (uint i = 0u; i < X_EACH; ++i) {
        uint at = i * THREADS + tid;
        if (at < TILE_M * UNITS) pool[base + at / UNITS * ROW + at % UNITS] = x_pairs(x_ahead[i]);
    }
}

void store_w(uint base) {
    [[unroll]] for (uint i = 0u; i < W_EACH; ++i) {
        uint at = i * W_OWNERS + w_owner;
        if (at < W_SLOTS) {
            WUnit w = w_ahead[i];
            uint to = base + X_STAGE + (w_set * W_ROWS + w_row(at)) * ROW + w_chunk(at) * 4u + w_octet(at);
            [[unroll]] for (uint q = 0u; q < OCTETS; ++q) {
                uint j = w_octet(at) + q, first = octet4(w.o[q], j, 0u), second = octet4(w.o[q], j, 1u);
#if GROUPS_A_CHUNK == 2
                float d = j < 2u ? w.s.d[0] : w.s.d[1], m = j < 2u ? w.s.m[0] : w.s.m[1];
#else
                float d = w.s.d[0], m = w.s.m[0];
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
void store(uint base) { store_x(base); store_w(base); }

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
    store(0u);
    if (PREFETCH > 0u) fetch(k0 + K_CHUNK);
    uint base = 0u;
    for (uint k = k0; k < k_end; k += K_CHUNK) {
        barrier();
        if (k + K_CHUNK < k_end) {
            if (PREFETCH == 0u) fetch(k + K_CHUNK);
            store(STAGE - base);
            if (PREFETCH > 0u) fetch(k + 2u * K_CHUNK);
        }
        multiply(base, x_row, w_row);
        base = STAGE - base;
    }
#else
    for (uint k = k0; k < k_end; k += K_CHUNK) {
        if (PREFETCH == 0u) fetch(k);
        barrier();
        store(0u);
        barrier();
        if (PREFETCH > 0u && k + K_CHUNK < k_end) fetch(k + K_CHUNK);
        multiply(0u, x_row, w_row);
    }
#endif

    // Sums leave through shared memory, a matrix at a time in the warp's own part, so that what lies outside y is left out.
    barrier();
    const uint area = MATRIX_M * MATRIX_N / 4u, mine = warp * area;
    const uint first_m = m0 + x_row, first_n = n0 + warp / WARPS_M * w_rows;
    [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i)
        [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j) {
            coopMatStore(WIDE_SUMS(sums[i * MATRICES_N + j]), pool, mine, MATRIX_N / 4u,
                         gl_CooperativeMatrixLayoutRowMajor);
            subgroupMemoryBarrierShared();
            subgroupBarrier();
            for (uint e = lane; e < MATRIX_M * MATRIX_N; e += SUBGROUP) {
                uint m = first_m + i * MATRIX_M + e / MATRIX_N, n = first_n + j * MATRIX_N + e % MATRIX_N;
                if (m < P.m && n < P.rows)
                    Y[gl_WorkGroupID.z * P.part_y + m * P.y_stride + P.row0 + n] =
                        Y_TYPE(uintBitsToFloat(pool[mine + e / 4u][e % 4u]));
            }
            subgroupMemoryBarrierShared();
            subgroupBarrier();
        }
}
