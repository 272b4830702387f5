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
const uint S_STAGE = CHUNKS * GROUPS_A_CHUNK * TILE_N / 4u;
const uint STAGE = X_STAGE + S_STAGE;
const uint DEPTH = PREFETCH > 0u ? PREFETCH : 1u;

ScaleWords s_ahead[S_EACH];
Octet w_ahead[DEPTH * GROUPS * 4u];
uint w_row[GROUPS], lane_j, last_chunk;

uint s_row(uint at) { return min(n0 + at % TILE_N, P.rows - 1u); }
uint s_chunk(uint k, uint at) { return min(k / 32u + at / TILE_N, last_chunk); }

void fetch_s(uint k) {
    [[unroll]] for (uint i = 0u; i < S_EACH; ++i) {
        uint at = i * THREADS + tid;
        s_ahead[i] = load_scale_words(s_row(at), s_chunk(k, at), P.rows);
    }
}

#if SUBNORMAL
// The spare unit behind the first row of x holds whether a scale was too large for its row's unit.
#define TOO_LARGE pool[UNITS].x
#define PAIRS(o, h, s) subnormal_pairs(o, h, s)
float scale_up[S_EACH], minimum_down[S_EACH];
void take_units() {
    [[unroll]] for (uint i = 0u; i < S_EACH; ++i) {
        const int e = int(unit_exponent((i * THREADS + tid) % TILE_N));
        scale_up[i] = power_of_two(24 - e);
        minimum_down[i] = power_of_two(-e);
    }
}
#else
#define PAIRS(o, h, s) octet_pairs(o, lane_j, h, s)
#endif

void store(uint k, uint base) {
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
    [[unroll]] for (uint i = 0u; i < S_EACH; ++i) {
        uint at = i * THREADS + tid;
        if (S_EACH * THREADS == TILE_N * CHUNKS || at < TILE_N * CHUNKS) {
            Scale own = scale_of(s_ahead[i], s_row(at), s_chunk(k, at));
            [[unroll]] for (uint g = 0u; g < GROUPS_A_CHUNK; ++g) {
                uint word = (at / TILE_N * GROUPS_A_CHUNK + g) * TILE_N + at % TILE_N;
#if SUBNORMAL
                if (abs(own.d[g]) >= SUBNORMAL_SCALES) {
                    atomicMax(largest[at % TILE_N], floatBitsToUint(abs(own.d[g])));
                    TOO_LARGE = 1u;
                }
                own.d[g] *= scale_up[i];
                own.m[g] *= minimum_down[i];
#endif
                pool[base + X_STAGE + word / 4u][word % 4u] = scale_word(own.d[g], own.m[g]);
            }
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
    uvec2 l_ = PAIRS(w[i_ * 4u + t_], h, s[i_][t_]); \
    uvec2 r_ = PAIRS(w[i_ * 4u + t_ + 1u], h, s[i_][t_ + 1u]); \
    f16vec2 a_ = unpackFloat2x16(l_.x), b_ = unpackFloat2x16(l_.y), c_ = unpackFloat2x16(r_.x), d_ = unpackFloat2x16(r_.y); \
    b[0] = a_.x; b[1] = a_.y; b[2] = b_.x; b[3] = b_.y; b[4] = c_.x; b[5] = c_.y; b[6] = d_.x; b[7] = d_.y; }

// The products of a step; with two stages, what the next step reads is stored after the first products, so that a warp has
// some to issue as soon as it leaves the barrier.
void multiply(uint base, uint k, uint x_row, uint s_first) {
    Octet w[GROUPS * 4u];
    uvec4 s[GROUPS];
    [[unroll]] for (uint t = 0u; t < 2u * CHUNKS; ++t) {
        const uint c = t / 2u, h = t % 2u;
#if BUFFERS == 2
        if (t == 1u) {
            store(k + K_CHUNK, STAGE - base);
            fetch_x(k + 2u * K_CHUNK);
            fetch_s(k + 2u * K_CHUNK);
        }
#endif
        if (h == 0u) {
            if (PREFETCH == 0u) fetch_w(k / 32u + c, 0u);
            [[unroll]] for (uint i = 0u; i < GROUPS * 4u; ++i) w[i] = w_ahead[c % DEPTH * GROUPS * 4u + i];
            if (PREFETCH > 0u) fetch_w(k / 32u + c + DEPTH, c % DEPTH);
            const uint group = GROUPS_A_CHUNK == 2u ? lane_j / 2u : 0u;
            [[unroll]] for (uint i = 0u; i < GROUPS; ++i)
                s[i] = pool[base + X_STAGE + ((c * GROUPS_A_CHUNK + group) * TILE_N + s_first + 32u * i) / 4u];
        }
        A_MATRIX a[MATRICES_M];
        [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i)
            coopMatLoad(a[i], pool, base + (x_row + i * 16u) * ROW + t * 2u, ROW, gl_CooperativeMatrixLayoutRowMajor);
        B_MATRIX b[MATRICES_N];
        [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j) { DECODE(b[j], j, h) }
        [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j)
            [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i)
                sums[i * MATRICES_N + j] = coopMatMulAdd(a[i], b[j], sums[i * MATRICES_N + j]);
    }
}

// The sums over this workgroup's part of k.
void sum_part(uint k0, uint x_row, uint s_first) {
    [[unroll]] for (uint i = 0u; i < MATRICES_M * MATRICES_N; ++i) sums[i] = SUMS(0.0);
    if (PREFETCH > 0u) [[unroll]] for (uint d = 0u; d < DEPTH; ++d) fetch_w(k0 / 32u + d, d);
    fetch_x(k0);
    fetch_s(k0);
#if BUFFERS == 2
    store(k0, 0u);
    fetch_x(k0 + K_CHUNK);
    fetch_s(k0 + K_CHUNK);
    uint base = 0u;
    for (uint k = k0; k < k_end; k += K_CHUNK) {
        barrier();
        multiply(base, k, x_row, s_first);
        base = STAGE - base;
    }
#else
    for (uint k = k0; k < k_end; k += K_CHUNK) {
        barrier();
        store(k, 0u);
        barrier();
        fetch_x(k + K_CHUNK);
        fetch_s(k + K_CHUNK);
        multiply(0u, k, x_row, s_first);
    }
#endif
}

void main() {
    mark_executed();
    tid = gl_LocalInvocationIndex;
    const uint warp = gl_SubgroupID, lane = gl_SubgroupInvocationID;
    m0 = (M_FIRST ? gl_WorkGroupID.x : gl_WorkGroupID.y) * TILE_M;
    n0 = (M_FIRST ? gl_WorkGroupID.y : gl_WorkGroupID.x) * TILE_N;
    const uint x_row = warp % WARPS_M * (MATRICES_M * 16u), w_first = warp / WARPS_M * (MATRICES_N * 16u);
    const uint lane_g = lane / 4u;
    lane_j = lane % 4u;
    const uint s_first = w_first + 4u * lane_g;
    [[unroll]] for (uint i = 0u; i < GROUPS; ++i) w_row[i] = min(n0 + s_first + 32u * i, P.rows - 4u);
    const uint k0 = gl_WorkGroupID.z * P.part_k;
    k_end = min(k0 + P.part_k, P.k);
    last_chunk = P.k / 32u - 1u;

#if SUBNORMAL
    for (uint row = tid; row < TILE_N; row += THREADS) largest[row] = 0u;
    // A second time only where a row needed another unit; a loop, so that the sums' code is there once.
    [[dont_unroll]] for (uint time = 0u; time < 2u; ++time) {
        barrier();
        take_units();
        if (tid == 0u) TOO_LARGE = 0u;
        barrier();
        sum_part(k0, x_row, s_first);
        barrier();
        if (TOO_LARGE == 0u) break;
    }
#define SUM(i, e, row) (power_of_two(int(unit_exponent(row))) * sums[i][e])
#else
    sum_part(k0, x_row, s_first);
#define SUM(i, e, row) sums[i][e]
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
                            Y_VECTOR(SUM(at, e, to - n0), SUM(at, f, to - n0 + 1u), SUM(at + 1u, e, to - n0 + 2u),
                                     SUM(at + 1u, f, to - n0 + 3u));
                }
        }
}
