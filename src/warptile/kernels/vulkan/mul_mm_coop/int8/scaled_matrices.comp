// y[m, n] = sum over blocks of x's scale * (sum over groups of w's scale * a whole-number sum of codes, less minimums), on
// cooperative matrices of int8. A group's scales meet its sums in the lanes that hold them: they are loaded as a matrix of
// equal rows, or picked by the order that the driver is known to keep sums in.
//
// A whole-number sum starts at 1.5 * 2^23 as an fp32 number's bits: below 2^22 in magnitude, it is that number plus the
// sum, exactly, and one subtraction is the conversion. Minimums are one product more: per group, an activation block's sum of
// codes as two exact fp16 numbers, and the minimum, as fp16, negative, for both.
layout(local_size_x = THREADS) in;

const int WHOLE_ZERO = 0x4b400000;
const float WHOLE_ZERO_VALUE = 12582912.0;
const uint ELEMENTS = MATRIX_M * MATRIX_N / SUBGROUP;

shared vec2 w_scale[W_SETS * W_ROWS * FOLDS / 2u];
#if COLUMNS
shared uvec4 w_minimum[W_SETS * W_ROWS * MINIMUM_ROW / 4];
#define MINIMUM_A coopmat<float16_t, gl_ScopeSubgroup, MATRIX_M, MINIMUM_K, gl_MatrixUseA>
#define MINIMUM_B coopmat<float16_t, gl_ScopeSubgroup, MINIMUM_K, MATRIX_N, gl_MatrixUseB>
#endif

void put_scale(uint row, uint fold, float d, float m) {
    const uint at = (w_set * FOLDS + fold) * W_ROWS + row;
    w_scale[at / 2u][at % 2u] = d;
#if COLUMNS
    const uint place = fold / (SPAN / FOLD) * (COLUMNS / 2u) + fold % (SPAN / FOLD);
    const uint to = (w_set * W_ROWS + row) * MINIMUM_ROW + place;
    w_minimum[to / 4u][to % 4u] = packFloat2x16(f16vec2(float16_t(-m)));
#endif
}

void store_w(uint k) {
    [[unroll]] for (uint i = 0u; i < W_EACH; ++i) {
        uint at = i * W_OWNERS + w_owner, row = w_row(at), chunk = w_chunk(at);
        if (W_EACH * W_OWNERS == W_ROWS * CHUNKS || at < W_ROWS * CHUNKS) {
            store_codes(chunk_ahead(i), row, chunk);
            Chunk s = scaled(s_ahead[i], global_row(row), global_chunk(k, chunk), P.rows);
#if GROUPS_A_CHUNK == 2
            put_scale(row, 2u * chunk, s.d.x, MINIMUM(s).x);
            put_scale(row, 2u * chunk + 1u, s.d.y, MINIMUM(s).y);
#else
            if (chunk * 32u % FOLD == 0u) put_scale(row, chunk * 32u / FOLD, s.d, MINIMUM(s));
#endif
        }
    }
}

SUMS sums[MATRICES_M * MATRICES_N];      // scaled by both
SUMS inner[MATRICES_M * MATRICES_N];     // of the present block of activations, before its scale

#if LANES
// Lane 4g + j holds of sums: elements 0, 1 at columns 2j, 2j + 1 of row g, those ROW_STEP further 8 rows below, those
// COLUMN_STEP further 8 columns to the right.
uint lane_g, lane_j;
#define SCALE_TYPE vec4
#define LOAD_SCALE(s, at) s = vec4(w_scale[(at) / 2u + lane_j], w_scale[(at) / 2u + 4u + lane_j])
#define SCALE_AT(s, e) s[(e) % 2u + (e) / COLUMN_STEP % 2u * 2u]
#define X_SCALE_TYPE vec2
#define LOAD_X_SCALE(s, row, k, span) s = vec2(x_scale_of((row) + lane_g, k, span), x_scale_of((row) + 8u + lane_g, k, span))
#define X_SCALE_AT(s, e) s[(e) / ROW_STEP % 2u]
#else
#define SCALE_TYPE SUMS
#define LOAD_SCALE(s, at) coopMatLoad(s, w_scale, (at) / 2u, 0u, gl_CooperativeMatrixLayoutRowMajor)
#define SCALE_AT(s, e) s[e]
#define X_SCALE_TYPE SUMS
#if X_SHARED
#define LOAD_X_SCALE(s, row, k, span) \
    coopMatLoad(s, x_scale, (span) * TILE_M + (row), 0u, gl_CooperativeMatrixLayoutColumnMajor)
#else
#define LOAD_X_SCALE(s, row, k, span) coopMatLoad(s, x_scales, \
    P.x_scales + ((k) / X_BLOCK + (span)) * P.x_m + m0 + (row), 0u, gl_CooperativeMatrixLayoutColumnMajor)
#endif
#define X_SCALE_AT(s, e) s[e]
#endif

#if X_SHARED
#define LOAD_SUM_A(a, row, k, column) \
    coopMatLoad(a, x_sum, ((row) * SUM_ROW + (column) / 2u) / 4u, SUM_ROW / 4, gl_CooperativeMatrixLayoutRowMajor)
#else
#define LOAD_SUM_A(a, row, k, column) coopMatLoad(a, x_sum_vectors, (P.x_sums + \
    ((m0 + (row)) * (P.x_k / K_CHUNK) + (k) / K_CHUNK) * SUM_WORDS + (column) / 2u) / 4u, \
    P.x_k / K_CHUNK * SUM_WORDS / 4, gl_CooperativeMatrixLayoutRowMajor)
#endif

void multiply_span(uint k, uint span, uint x_row, uint w_row) {
    [[FOLDED]] for (uint g = 0u; g < SPAN / FOLD; ++g) {
        const uint fold = span * (SPAN / FOLD) + g;
        B_MATRIX b[MATRICES_N * STEPS];
        SCALE_TYPE scale[MATRICES_N];
        [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j) {
            [[unroll]] for (uint s = 0u; s < STEPS; ++s)
                coopMatLoad(b[j * STEPS + s], w_stage, (w_row + j * MATRIX_N) * W_ROW + w_at(fold) +
                            s * (MATRIX_K / UNIT_BYTES), W_ROW, gl_CooperativeMatrixLayoutColumnMajor);
            const uint set = w_row / W_ROWS, row = w_row % W_ROWS + j * MATRIX_N;
            LOAD_SCALE(scale[j], (set * FOLDS + fold) * W_ROWS + row);
        }
        [[FOLDED]] for (uint i = 0u; i < MATRICES_M; ++i) if (IN_X(i)) {
            A_MATRIX a[STEPS];
            [[unroll]] for (uint s = 0u; s < STEPS; ++s) LOAD_A(a[s], x_row + i * MATRIX_M, k, x_at(fold) + s * MATRIX_K);
            [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j) {
                WHOLE_SUMS whole = WHOLE_SUMS(WHOLE_ZERO);
                [[unroll]] for (uint s = 0u; s < STEPS; ++s) whole = coopMatMulAdd(a[s], b[j * STEPS + s], whole);
                [[unroll]] for (uint e = 0u; e < ELEMENTS; ++e)
                    inner[i * MATRICES_N + j][e] += SCALE_AT(scale[j], e) * (intBitsToFloat(whole[e]) - WHOLE_ZERO_VALUE);
            }
        }
    }
#if COLUMNS
    [[unroll]] for (uint c = 0u; c < COLUMNS; c += MINIMUM_K) {
        MINIMUM_B b[MATRICES_N];
        [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j)
            coopMatLoad(b[j], w_minimum, ((w_row + j * MATRIX_N) * MINIMUM_ROW + (span * COLUMNS + c) / 2u) / 4u,
                        MINIMUM_ROW / 4, gl_CooperativeMatrixLayoutColumnMajor);
        [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i) if (IN_X(i)) {
            MINIMUM_A a;
            LOAD_SUM_A(a, x_row + i * MATRIX_M, k, span * COLUMNS + c);
            [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j)
                inner[i * MATRICES_N + j] = coopMatMulAdd(a, b[j], inner[i * MATRICES_N + j]);
        }
    }
#endif
}

void scale_by_x(uint k, uint span, uint x_row) {
    [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i) {
        X_SCALE_TYPE s;
        LOAD_X_SCALE(s, x_row + i * MATRIX_M, k, span);
        [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j) {
            [[unroll]] for (uint e = 0u; e < ELEMENTS; ++e)
                sums[i * MATRICES_N + j][e] += X_SCALE_AT(s, e) * inner[i * MATRICES_N + j][e];
            inner[i * MATRICES_N + j] = SUMS(0.0);
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
                Y_TYPE(uintBitsToFloat(w_stage[from + e / (UNIT_BYTES / 4u)][e % (UNIT_BYTES / 4u)]));
    }
    subgroupMemoryBarrierShared();
    subgroupBarrier();
}
#define LEAVE_WHOLE(i, j) coopMatStore(Y_SUMS(sums[i * MATRICES_N + j]), Y, y_at + i * MATRIX_M * P.y_stride + \
    j * MATRIX_N, P.y_stride, gl_CooperativeMatrixLayoutRowMajor);
#define LEAVE_PART(i, j) coopMatStore(sums[i * MATRICES_N + j], w_stage, mine, MATRIX_N / (UNIT_BYTES / 4u), \
    gl_CooperativeMatrixLayoutRowMajor); leave_part(mine, first_m + i * MATRIX_M, first_n + j * MATRIX_N);

void main() {
    mark_executed();
    place();
    const uint warp = gl_SubgroupID;
    const uint x_row = warp % WARPS_M * (MATRICES_M * MATRIX_M), w_rows = MATRICES_N * MATRIX_N;
    const uint w_row = W_SETS == 1u ? warp / WARPS_M * w_rows : warp * w_rows;
    const uint k0 = gl_WorkGroupID.z * P.part_k;
#if LANES
    lane_g = gl_SubgroupInvocationID / 4u;
    lane_j = gl_SubgroupInvocationID % 4u;
#endif
    clear_gaps();
#if COLUMNS
    for (uint at = w_owner; at < W_ROWS * MINIMUM_ROW / 4; at += W_OWNERS)
        w_minimum[w_set * W_ROWS * MINIMUM_ROW / 4 + at] = uvec4(0u);
    SYNC;
#endif
    [[unroll]] for (uint i = 0u; i < MATRICES_M * MATRICES_N; ++i) { sums[i] = SUMS(0.0); inner[i] = SUMS(0.0); }
    if (PREFETCH > 0u) { fetch_x(k0); fetch_w(k0); }
    for (uint k = k0; k < k_end; k += K_CHUNK) {
        if (PREFETCH == 0u) { fetch_x(k); fetch_w(k); }
        SYNC;                            // every warp has read what the step before staged
        store_x();
        store_w(k);
        SYNC;
        if (PREFETCH > 0u && k + K_CHUNK < k_end) { fetch_x(k + K_CHUNK); fetch_w(k + K_CHUNK); }
        [[unroll]] for (uint span = 0u; span < SPANS; ++span) {
            multiply_span(k, span, x_row, w_row);
            if (SPAN == X_BLOCK || (k + K_CHUNK) % X_BLOCK == 0u) scale_by_x(k, span, x_row);
        }
    }

    const uint first_m = m0 + x_row, first_n = n0 + warp / WARPS_M * w_rows;
    if (m0 + TILE_M <= P.m && n0 + TILE_N <= P.rows && (P.y_stride | P.row0 | P.part_y) % 8u == 0u) {
        const uint y_at = gl_WorkGroupID.z * P.part_y + first_m * P.y_stride + P.row0 + first_n;
        EACH_SUM(LEAVE_WHOLE)
    } else {
        barrier();                       // the room is that of other warps' weights too
        const uint mine = warp * (MATRIX_M * MATRIX_N * 4u / UNIT_BYTES);
        EACH_SUM(LEAVE_PART)
    }
}
