// y[m, n] = sum_k x[m, k] * w[n, k] on cooperative matrices of fp16, weights decoded straight into the matrices.
//
// A lane's part of a 16x16 matrix is, for lane 4g + j: of B (k along rows) its elements 0, 1 at k = 2j, 2j + 1 and 2, 3 at
// k = 2j + 8, 2j + 9 of column g, 4..7 the same of column g + 8; of the sums its elements 0, 1 at columns 2j, 2j + 1 of
// row g, those ROW_STEP further 8 rows below and those COLUMN_STEP further 8 columns to the right. A warp's columns stand for rows of w in groups of 32: column
// g of the group's half-matrix t (0..3) is row 4g + t, so that a lane's four rows are neighbours. Along k a chunk's octet j
// lies where lane j holds it, first its pairs (e0, e2), (e1, e3), then (e4, e6), (e5, e7); x is staged in the same order.
layout(local_size_x = THREADS) in;
layout(std430, set = 0, binding = 2) writeonly buffer YVectorBuffer { Y_VECTOR YVectors[]; };

const uint GROUPS = MATRICES_N / 2u;
const uint DEPTH = PREFETCH > 0u ? PREFETCH : 1u;
const uint OWN_CHUNKS = CHUNKS / WARPS_K;   // chunks of a step that a warp multiplies
// Scales are staged for SPAN chunks at a time, a whole number of steps; LOAD_SPAN of them come from the same words.
const uint S_STAGE = SPAN * GROUPS_A_CHUNK * TILE_N / 4u;
const uint S_SLOTS = TILE_N * SPAN / LOAD_SPAN;
const uint STEPS = SPAN / CHUNKS;

ScaleWords s_ahead[S_EACH];
Octet w_ahead[DEPTH * GROUPS * 4u];
uint w_row[GROUPS], lane_j, last_chunk;

uint s_row(uint at) { return min(n0 + at % TILE_N, P.rows - 1u); }
uint s_chunk(uint span, uint at) { return span * SPAN + at / TILE_N * LOAD_SPAN; }

void fetch_s(uint span) {
    [[unroll]] for (uint i = 0u; i < S_EACH; ++i) {
        uint at = i * THREADS + tid;
        s_ahead[i] = load_scale_words(s_row(at), min(s_chunk(span, at), last_chunk), P.rows);
    }
}

void store_s(uint span, uint base) {
    [[unroll]] for (uint i = 0u; i < S_EACH; ++i) {
        uint at = i * THREADS + tid;
        if (S_EACH * THREADS == S_SLOTS || at < S_SLOTS)
            [[unroll]] for (uint u = 0u; u < LOAD_SPAN; ++u) {
                Scale own = scale_of(s_ahead[i], s_row(at), s_chunk(span, at) + u);
                [[unroll]] for (uint g = 0u; g < GROUPS_A_CHUNK; ++g) {
                    uint word = ((at / TILE_N * LOAD_SPAN + u) * GROUPS_A_CHUNK + g) * TILE_N + at % TILE_N;
                    pool[base + word / 4u][word % 4u] = scale_word(own.d[g], own.m[g]);
                }
            }
    }
}

void store_x(uint base) {
    [[unroll]] for (uint i = 0u; i < X_EACH; ++i) {
        uint at = i * THREADS + tid, unit = at % UNITS, to = base + at / UNITS * ROW + (unit & ~3u), j = unit & 3u;
        if (X_EACH * THREADS == TILE_M * UNITS || at < TILE_M * UNITS) {
            uvec4 x = x_pairs(x_ahead[i]);
            pool[to][j] = x.x;
            pool[to + 1u][j] = x.y;
            pool[to + 2u][j] = x.z;
            pool[to + 3u][j] = x.w;
        }
    }
}

void fetch_w(uint chunk, uint slot) {
    [[unroll]] for (uint i = 0u; i < GROUPS; ++i) {
        Octet o[4];
        load_octets4(w_row[i], min(chunk, last_chunk), lane_j, P.rows, o);
        [[unroll]] for (uint t = 0u; t < 4u; ++t) w_ahead[(slot * GROUPS + i) * 4u + t] = o[t];
    }
}

SUMS sums[MATRICES_M * MATRICES_N];

#define DECODE(b, j, h) { \
    const uint i_ = (j) / 2u, t_ = (j) % 2u * 2u; \
    uvec2 l_ = octet_pairs(w[i_ * 4u + t_], lane_j, h, s[i_][t_]); \
    uvec2 r_ = octet_pairs(w[i_ * 4u + t_ + 1u], lane_j, h, s[i_][t_ + 1u]); \
    f16vec2 a_ = unpackFloat2x16(l_.x), b_ = unpackFloat2x16(l_.y), c_ = unpackFloat2x16(r_.x), d_ = unpackFloat2x16(r_.y); \
    b[0] = a_.x; b[1] = a_.y; b[2] = b_.x; b[3] = b_.y; b[4] = c_.x; b[5] = c_.y; b[6] = d_.x; b[7] = d_.y; }

// A warp's chunks of a step: number c of them lies at warp_k * OWN_CHUNKS + c, and OWN_CHUNKS further in the next step.
uint w_chunk(uint k, uint warp_k, uint c) {
    return k / 32u + c / OWN_CHUNKS * CHUNKS + warp_k * OWN_CHUNKS + c % OWN_CHUNKS;
}

// What a step leaves for the next: its activations, and the next span's scales where the step ends a span.
void prepare(uint k, uint x_other, bool ends_span, uint next_span, uint s_other) {
    store_x(x_other);
    fetch_x(k + 2u * K_CHUNK);
    if (ends_span) {
        store_s(next_span, s_other);
        fetch_s(next_span + 1u);
    }
}

#define LOAD_A(to, t) coopMatLoad(to, pool, x_base + (x_row + i * 16u) * ROW + (warp_k * OWN_CHUNKS + (t) / 2u) * 4u + \
    (t) % 2u * 2u, ROW, gl_CooperativeMatrixLayoutRowMajor);

void multiply(uint x_base, uint s_base, uint s_chunk0, uint k, uint warp_k, uint x_row, uint s_first, uint x_other,
              bool ends_span, uint next_span, uint s_other) {
#if A_MODE == 2
    A_MATRIX a[2u * MATRICES_M];
    [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i) LOAD_A(a[i], 0u)
#endif
    uvec4 s[GROUPS];
    Octet w[GROUPS * 4u];
    [[unroll]] for (uint t = 0u; t < 2u * OWN_CHUNKS; ++t) {
        const uint c = t / 2u, h = t % 2u;
        if (BUFFERS == 2 && t == STORE_AT) prepare(k, x_other, ends_span, next_span, s_other);
        if (h == 0u) {
            if (PREFETCH == 0u) fetch_w(w_chunk(k, warp_k, c), 0u);
            [[unroll]] for (uint i = 0u; i < GROUPS * 4u; ++i) w[i] = w_ahead[c % DEPTH * GROUPS * 4u + i];
            if (PREFETCH > 0u) fetch_w(w_chunk(k, warp_k, c + DEPTH), c % DEPTH);
            const uint group = GROUPS_A_CHUNK == 2u ? lane_j / 2u : 0u, span_chunk = s_chunk0 + warp_k * OWN_CHUNKS + c;
            [[unroll]] for (uint i = 0u; i < GROUPS; ++i)
                s[i] = pool[s_base + ((span_chunk * GROUPS_A_CHUNK + group) * TILE_N + s_first + 32u * i) / 4u];
        }
#if A_MODE == 2
        const uint a0 = h * MATRICES_M;
        if (t + 1u < 2u * OWN_CHUNKS)
            [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i) LOAD_A(a[(1u - h) * MATRICES_M + i], t + 1u)
#elif A_MODE == 1
        const uint a0 = 0u;
        A_MATRIX a[MATRICES_M];
        [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i) LOAD_A(a[i], t)
#endif
#if DECODE_FIRST
        B_MATRIX b[MATRICES_N];
        [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j) { DECODE(b[j], j, h) }
#if A_MODE == 0
        [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i) {
            A_MATRIX a;
            LOAD_A(a, t)
            [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j)
                sums[i * MATRICES_N + j] = coopMatMulAdd(a, b[j], sums[i * MATRICES_N + j]);
        }
#else
        [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j)
            [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i)
                sums[i * MATRICES_N + j] = coopMatMulAdd(a[a0 + i], b[j], sums[i * MATRICES_N + j]);
#endif
#else
        [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j) {
            B_MATRIX b;
            DECODE(b, j, h)
            [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i)
                sums[i * MATRICES_N + j] = coopMatMulAdd(a[a0 + i], b, sums[i * MATRICES_N + j]);
        }
#endif
    }
}

#if WARPS_ALONG_K > 1
// Sums of the warps that multiplied other chunks of the same rows, added in order of their number, MEETING matrices at a
// time through shared memory. Element indices stay constant: one that is not sends the sums to memory.
void meet(uint warp, uint warp_k, uint lane) {
    const uint together = WARPS_N * WARPS_M;
    [[unroll]] for (uint first = 0u; first < MATRICES_M * MATRICES_N; first += MEETING) {
        barrier();
        if (warp_k > 0u)
            [[unroll]] for (uint i = 0u; i < MEETING; ++i)
                [[unroll]] for (uint e = 0u; e < 8u; e += 4u)
                    pool[((warp - together) * MEETING + i) * 64u + e * 8u + lane] = floatBitsToUint(
                        vec4(sums[first + i][e], sums[first + i][e + 1u], sums[first + i][e + 2u], sums[first + i][e + 3u]));
        barrier();
        if (warp_k == 0u)
            [[unroll]] for (uint other = 0u; other < WARPS_K - 1u; ++other)
                [[unroll]] for (uint i = 0u; i < MEETING; ++i)
                    [[unroll]] for (uint e = 0u; e < 8u; e += 4u) {
                        vec4 v = uintBitsToFloat(pool[((other * together + warp) * MEETING + i) * 64u + e * 8u + lane]);
                        sums[first + i][e] = SUM_SCALAR(float(sums[first + i][e]) + v.x);
                        sums[first + i][e + 1u] = SUM_SCALAR(float(sums[first + i][e + 1u]) + v.y);
                        sums[first + i][e + 2u] = SUM_SCALAR(float(sums[first + i][e + 2u]) + v.z);
                        sums[first + i][e + 3u] = SUM_SCALAR(float(sums[first + i][e + 3u]) + v.w);
                    }
    }
}
#endif

void main() {
    mark_executed();
    tid = gl_LocalInvocationIndex;
    const uint warp = gl_SubgroupID, lane = gl_SubgroupInvocationID;
    const uint warp_k = warp / (WARPS_N * WARPS_M), warp_nm = warp % (WARPS_N * WARPS_M);
    m0 = (M_FIRST ? gl_WorkGroupID.x : gl_WorkGroupID.y) * TILE_M;
    n0 = (M_FIRST ? gl_WorkGroupID.y : gl_WorkGroupID.x) * TILE_N;
    const uint x_row = warp_nm % WARPS_M * (MATRICES_M * 16u), w_first = warp_nm / WARPS_M * (MATRICES_N * 16u);
    const uint lane_g = lane / 4u;
    lane_j = lane % 4u;
    const uint s_first = w_first + 4u * lane_g;
    [[unroll]] for (uint i = 0u; i < GROUPS; ++i) w_row[i] = min(n0 + s_first + 32u * i, P.rows - 4u);
    const uint k0 = gl_WorkGroupID.z * P.part_k;
    k_end = min(k0 + P.part_k, P.k);
    last_chunk = P.k / 32u - 1u;

    [[unroll]] for (uint i = 0u; i < MATRICES_M * MATRICES_N; ++i) sums[i] = SUMS(0.0);
    if (PREFETCH > 0u) [[unroll]] for (uint d = 0u; d < DEPTH; ++d) fetch_w(w_chunk(k0, warp_k, d), d);
    fetch_x(k0);
    const uint span0 = k0 / 32u / SPAN;
    fetch_s(span0);
    // Steps of a span are written out, so that a step is one piece of straight code: which buffers it reads, whether the
    // span's scales end with it. A part of k may start or end inside a span.
#if BUFFERS == 2
    store_x(k0 / K_CHUNK % 2u * X_STAGE);
    store_s(span0, 2u * X_STAGE + span0 % 2u * S_STAGE);
    fetch_x(k0 + K_CHUNK);
    fetch_s(span0 + 1u);
    for (uint span = span0; span * SPAN * 32u < k_end; ++span) {
        const uint s_base = 2u * X_STAGE + span % 2u * S_STAGE, s_other = 2u * X_STAGE + (1u - span % 2u) * S_STAGE;
        [[unroll]] for (uint step = 0u; step < STEPS; ++step) {
            const uint k = span * SPAN * 32u + step * K_CHUNK;
            if (STEPS == 1u || (k >= k0 && k < k_end)) {
                const uint x_base = k / K_CHUNK % 2u * X_STAGE;
                barrier();
                multiply(x_base, s_base, step * CHUNKS, k, warp_k, x_row, s_first, X_STAGE - x_base, step + 1u == STEPS,
                         span + 1u, s_other);
            }
        }
    }
#else
    for (uint span = span0; span * SPAN * 32u < k_end; ++span) {
        [[unroll]] for (uint step = 0u; step < STEPS; ++step) {
            const uint k = span * SPAN * 32u + step * K_CHUNK;
            if (STEPS == 1u || (k >= k0 && k < k_end)) {
                const bool new_span = step == 0u || (STEPS > 1u && k == k0);
                barrier();
                store_x(0u);
                if (new_span) store_s(span, X_STAGE);
                barrier();
                fetch_x(k + K_CHUNK);
                if (new_span) fetch_s(span + 1u);
                multiply(0u, X_STAGE, step * CHUNKS, k, warp_k, x_row, s_first, 0u, false, 0u, 0u);
            }
        }
    }
#endif

#if WARPS_ALONG_K > 1
    meet(warp, warp_k, lane);
    if (warp_k > 0u) return;
#endif
    const uint n = n0 + w_first + 8u * lane_j;
    [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i)
        [[unroll]] for (uint r = 0u; r < 2u; ++r) {
            const uint m = m0 + x_row + i * 16u + 8u * r + lane_g;
            [[unroll]] for (uint g = 0u; g < GROUPS; ++g)
                [[unroll]] for (uint q = 0u; q < 2u; ++q) {
                    const uint at = i * MATRICES_N + 2u * g, e = ROW_STEP * r + q, f = e + COLUMN_STEP;
                    const uint to = n + 32u * g + 4u * q;
                    if (m < P.m && to < P.rows)
                        YVectors[(gl_WorkGroupID.z * P.part_y + m * P.y_stride + P.row0 + to) / 4u] =
                            Y_VECTOR(sums[at][e], sums[at][f], sums[at + 1u][e], sums[at + 1u][f]);
                }
        }
}
