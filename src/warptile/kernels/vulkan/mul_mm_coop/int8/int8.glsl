// What int8 kernels share: quantized activations as the pre-pass left them, weights as signed bytes, both staged a K_CHUNK
// at a time. W_OWNERS threads decode a set of W_ROWS rows together: the block all of its rows, or each warp its own.
layout(std430, set = 0, binding = 0) readonly buffer XScaleBuffer { float x_scales[]; };
layout(std430, set = 0, binding = 0) readonly buffer XSumBuffer { uint x_sums[]; };
layout(std430, set = 0, binding = 0) readonly buffer XSumVectorBuffer { uvec4 x_sum_vectors[]; };

const uint UNITS = 32u / UNIT_BYTES;                 // units of a chunk of 32 codes
const uint CHUNKS = K_CHUNK / 32u;
const uint SPANS = K_CHUNK / SPAN;
const uint X_UNITS = K_CHUNK / UNIT_BYTES;
const uint X_ROW = X_UNITS + PAD / UNIT_BYTES;
const uint W_ROW = X_UNITS * (GAPPED ? 3u : 2u) / 2u + PAD / UNIT_BYTES;

shared UNIT w_stage[W_POOL];
#if X_SHARED
shared UNIT x_stage[TILE_M * X_ROW];
shared float x_scale[SPANS * TILE_M];
#if SUM_WORDS
shared uvec4 x_sum[TILE_M * SUM_ROW / 4];
#endif
UNIT x_ahead[X_EACH];
float x_scale_ahead[X_SCALE_EACH];
uint x_sum_ahead[X_SUM_EACH];
#endif

uint tid, m0, n0, k_end;
uint w_owner, w_set, w_set_row;          // which of the owners' threads this is, its set, the set's first row in the tile
uint w_ahead[W_EACH * CODE_WORDS];
ScaleWords s_ahead[W_EACH];

#if SHARED_BY_BLOCK
#define SYNC barrier()
#else
// Nothing passes between warps.
#define SYNC subgroupMemoryBarrierShared(); subgroupBarrier()
#endif

uint global_row(uint row) { return min(n0 + w_set_row + row, P.rows - 1u); }
uint global_chunk(uint k, uint chunk) { return min(k / 32u + chunk, P.k / 32u - 1u); }
uint w_row(uint at) { return at % W_ROWS; }
uint w_chunk(uint at) { return at / W_ROWS; }

#if X_SHARED
void fetch_x(uint k) {
    [[unroll]] for (uint i = 0u; i < X_EACH; ++i) {
        uint at = i * THREADS + tid;
        if (X_EACH * THREADS == TILE_M * X_UNITS || at < TILE_M * X_UNITS)
            x_ahead[i] = X[((m0 + at / X_UNITS) * P.x_k + k) / UNIT_BYTES + at % X_UNITS];
    }
    [[unroll]] for (uint i = 0u; i < X_SCALE_EACH; ++i) {
        uint at = i * THREADS + tid;
        if (at < SPANS * TILE_M)
            x_scale_ahead[i] = x_scales[P.x_scales + (k / X_BLOCK + at / TILE_M) * P.x_m + m0 + at % TILE_M];
    }
#if SUM_WORDS
    [[unroll]] for (uint i = 0u; i < X_SUM_EACH; ++i) {
        uint at = i * THREADS + tid;
        if (at < TILE_M * SUM_WORDS)
            x_sum_ahead[i] = x_sums[P.x_sums + ((m0 + at / SUM_WORDS) * (P.x_k / K_CHUNK) + k / K_CHUNK) * SUM_WORDS
                                    + at % SUM_WORDS];
    }
#endif
}

void store_x() {
    [[unroll]] for (uint i = 0u; i < X_EACH; ++i) {
        uint at = i * THREADS + tid;
        if (X_EACH * THREADS == TILE_M * X_UNITS || at < TILE_M * X_UNITS)
            x_stage[at / X_UNITS * X_ROW + at % X_UNITS] = x_ahead[i];
    }
    [[unroll]] for (uint i = 0u; i < X_SCALE_EACH; ++i) {
        uint at = i * THREADS + tid;
        if (at < SPANS * TILE_M) x_scale[at] = x_scale_ahead[i];
    }
#if SUM_WORDS
    [[unroll]] for (uint i = 0u; i < X_SUM_EACH; ++i) {
        uint at = i * THREADS + tid;
        const uint to = at / SUM_WORDS * SUM_ROW + at % SUM_WORDS;
        if (at < TILE_M * SUM_WORDS) x_sum[to / 4u][to % 4u] = x_sum_ahead[i];
    }
#endif
}
#define LOAD_A(a, row, k, at) coopMatLoad(a, x_stage, (row) * X_ROW + (at) / UNIT_BYTES, X_ROW, \
    gl_CooperativeMatrixLayoutRowMajor)
float x_scale_of(uint row, uint k, uint span) { return x_scale[span * TILE_M + row]; }
#if SUM_WORDS
uint x_sum_of(uint row, uint k, uint word) { return x_sum[(row * SUM_ROW + word) / 4u][(row * SUM_ROW + word) % 4u]; }
#endif
#else
void fetch_x(uint k) {}
void store_x() {}
#define LOAD_A(a, row, k, at) coopMatLoad(a, X, ((m0 + (row)) * P.x_k + (k) + (at)) / UNIT_BYTES, P.x_k / UNIT_BYTES, \
    gl_CooperativeMatrixLayoutRowMajor)
float x_scale_of(uint row, uint k, uint span) {
    return x_scales[P.x_scales + (k / X_BLOCK + span) * P.x_m + m0 + row];
}
#if SUM_WORDS
uint x_sum_of(uint row, uint k, uint word) {
    return x_sums[P.x_sums + ((m0 + row) * (P.x_k / K_CHUNK) + k / K_CHUNK) * SUM_WORDS + word];
}
#endif
#endif

void fetch_w(uint k) {
    [[unroll]] for (uint i = 0u; i < W_EACH; ++i) {
        uint at = i * W_OWNERS + w_owner, row = global_row(w_row(at)), chunk = global_chunk(k, w_chunk(at));
        Chunk c = load_chunk(row, chunk, P.rows);
        uint words[CODE_WORDS];
        put_codes(c, words);
        [[unroll]] for (uint j = 0u; j < CODE_WORDS; ++j) w_ahead[i * CODE_WORDS + j] = words[j];
#if STAGES_SCALES
        s_ahead[i] = load_scale_words(row, chunk, P.rows);
#endif
    }
}

#if UNIT_BYTES == 16
#define CODES_UNIT(c, u) uvec4(CODES(c, 4u * (u)), CODES(c, 4u * (u) + 1u), CODES(c, 4u * (u) + 2u), CODES(c, 4u * (u) + 3u))
#else
#define CODES_UNIT(c, u) uvec2(CODES(c, 2u * (u)), CODES(c, 2u * (u) + 1u))
#endif

void store_codes(Chunk c, uint row, uint chunk) {
    const uint to = (w_set * W_ROWS + row) * W_ROW + chunk * (GAPPED ? 3u : UNITS);
    [[unroll]] for (uint u = 0u; u < UNITS; ++u) w_stage[to + u * (GAPPED ? 2u : 1u)] = CODES_UNIT(c, u);
}

Chunk chunk_ahead(uint i) {
    uint at = i * W_OWNERS + w_owner, words[CODE_WORDS];
    Chunk c;
    [[unroll]] for (uint j = 0u; j < CODE_WORDS; ++j) words[j] = w_ahead[i * CODE_WORDS + j];
    take_codes(c, words);
    return c;
}

// Where two groups share a matrix, 16 zeros lie between their codes, so that either group is a matrix with the zeros.
void clear_gaps() {
    if (!GAPPED) return;
    for (uint at = w_owner; at < W_ROWS * CHUNKS; at += W_OWNERS)
        w_stage[(w_set * W_ROWS + w_row(at)) * W_ROW + w_chunk(at) * 3u + 1u] = UNIT(0u);
}
// Where a group's codes start, in units of a staged row.
uint w_at(uint fold) { return GAPPED ? fold / 2u * 3u + fold % 2u : fold * FOLD / UNIT_BYTES; }
uint x_at(uint fold) { return GAPPED ? fold / 2u * 32u : fold * FOLD; }

#define A_MATRIX coopmat<int8_t, gl_ScopeSubgroup, MATRIX_M, MATRIX_K, gl_MatrixUseA>
#define B_MATRIX coopmat<int8_t, gl_ScopeSubgroup, MATRIX_K, MATRIX_N, gl_MatrixUseB>
#define WHOLE_SUMS coopmat<int, gl_ScopeSubgroup, MATRIX_M, MATRIX_N, gl_MatrixUseAccumulator>
#define SUMS coopmat<float, gl_ScopeSubgroup, MATRIX_M, MATRIX_N, gl_MatrixUseAccumulator>

// Whether the i-th activation matrix of some warp has rows in y; the rest is padding. All warps agree, so that barriers in it
// are met by all.
#define IN_X(i) ((i) == 0u || m0 + (i) * MATRIX_M < P.m)

const uint STEPS = GAPPED ? 1u : FOLD / MATRIX_K;    // matrices a fold

void place() {
    tid = gl_LocalInvocationIndex;
    m0 = (M_FIRST ? gl_WorkGroupID.x : gl_WorkGroupID.y) * TILE_M;
    n0 = (M_FIRST ? gl_WorkGroupID.y : gl_WorkGroupID.x) * TILE_N;
    const uint warp = gl_SubgroupID;
    w_owner = W_SETS == 1u ? tid : gl_SubgroupInvocationID;
    w_set = W_SETS == 1u ? 0u : warp;
    w_set_row = W_SETS == 1u ? 0u : warp / WARPS_M * W_ROWS;
    k_end = min(gl_WorkGroupID.z * P.part_k + P.part_k, P.k);
}
