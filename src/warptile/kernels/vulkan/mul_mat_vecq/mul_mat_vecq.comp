// y[m, n] = sum_k xq[m, k] * w[n, k] for few m, xq the activations as int8 with a scale every 32. Lanes run along n, each
// with LOAD_N neighbouring rows a load; SPLIT_K parts of the workgroup share k, CHUNKS neighbouring chunks a step. Codes are
// multiplied as they are: an offset takes off offset * (sum of xq) as a whole number, scale and minimum come once a group.
layout(local_size_x = THREADS) in;

const uint GROUPS_N = THREAD_N / LOAD_N;
const uint SUMS = COLUMNS * THREAD_N;
const uint STEPS = (CHUNKS_K + SPLIT_K * CHUNKS - 1u) / (SPLIT_K * CHUNKS);
const bool WHOLE = CHUNKS_K % (SPLIT_K * CHUNKS) == 0u;
// Lanes that add up what neighbours hold of the same rows before shared memory sees it.
const uint TOGETHER = SHUFFLED ? max(SUBGROUP, LANES_N) : LANES_N;
const uint PARTIALS = THREADS / TOGETHER;

#if X_SHARED
shared uvec4 x_codes[2u * COLUMNS * CHUNKS_K];
shared uvec2 x_tails[COLUMNS * CHUNKS_K];
#endif
#if PARTIAL_SUMS
shared float partial[PARTIALS * SUMS * LANES_N];
#endif

WideWords ahead[CHUNKS * GROUPS_N];
uint row[GROUPS_N];
float acc[SUMS];

uint first_chunk(uint step, uint part) { return (step * SPLIT_K + part) * CHUNKS; }

void fetch(uint first) {
    [[unroll]] for (uint u = 0u; u < CHUNKS; ++u)
        [[unroll]] for (uint g = 0u; g < GROUPS_N; ++g)
            ahead[u * GROUPS_N + g] = load_wide(row[g], WHOLE ? first + u : min(first + u, CHUNKS_K - 1u), P.rows);
}

#if X_SHARED && EIGHT_LANES
const uint X_VECTORS = 8u * COLUMNS * CHUNKS_K;
const uint X_FIRST = min(4u, (X_VECTORS + THREADS - 1u) / THREADS);
uint x_vector(uint m0, uint at) { return min(m0 + at / (8u * CHUNKS_K), P.m - 1u) * (8u * CHUNKS_K) + at % (8u * CHUNKS_K); }
void stage_x(uint at, vec4 x) {
    const XPart q = quantize_part(x);
    x_codes[at / 4u][at % 4u] = q.codes;
    if (at % 8u == 0u) x_tails[at / 8u] = q.tail;
}
#endif

XChunk x_chunk(uint m0, uint column, uint chunk) {
    XChunk x;
#if X_SHARED
    const uint at = column * CHUNKS_K + chunk;
    x.codes[0] = x_codes[2u * at];
    x.codes[1] = x_codes[2u * at + 1u];
    x.tail = x_tails[at];
#else
    const uint at = 3u * (min(m0 + column, P.m - 1u) * CHUNKS_K + chunk);
    x.codes[0] = X[at];
    x.codes[1] = X[at + 1u];
    x.tail = X[at + 2u].xy;
#endif
    return x;
}

// What a row's chunk adds for one row of x, less the scale of x: its groups' whole-number sums, scaled.
float chunk_sum(Chunk c, int codes[8], XChunk x) {
    ivec2 s = ivec2(0);
    [[unroll]] for (uint i = 0u; i < 8u; ++i) s[i / 4u] += dot4(codes[i], int(x.codes[i / 4u][i % 4u]));
    const ivec2 xs = ivec2(bitfieldExtract(int(x.tail.y), 0, 16), int(x.tail.y) >> 16);
#if GROUPS == 2
    const vec2 sum = vec2(s - ZERO_POINT * xs);
    float t = c.d.x * sum.x + c.d.y * sum.y;
#if HAS_MINIMUM
    t -= c.m.x * float(xs.x) + c.m.y * float(xs.y);
#endif
#else
    float t = c.d * float(s.x + s.y - ZERO_POINT * (xs.x + xs.y));
#if HAS_MINIMUM
    t -= c.m * float(xs.x + xs.y);
#endif
#endif
    return t;
}

void multiply(WideWords words[CHUNKS * GROUPS_N], uint first, uint m0) {
    [[unroll]] for (uint u = 0u; u < CHUNKS; ++u) {
        const uint chunk = first + u;
        if (WHOLE || chunk < CHUNKS_K) {
            XChunk x[COLUMNS];
            [[unroll]] for (uint i = 0u; i < COLUMNS; ++i) x[i] = x_chunk(m0, i, chunk);
            [[unroll]] for (uint j = 0u; j < THREAD_N; ++j) {
                const uint g = j / LOAD_N;
                const Chunk c = wide_chunk(words[u * GROUPS_N + g], j % LOAD_N, row[g], chunk, P.rows);
                int codes[8];
                [[unroll]] for (uint i = 0u; i < 8u; ++i) codes[i] = CODES4(c, i);
                [[unroll]] for (uint i = 0u; i < COLUMNS; ++i)
                    acc[i * THREAD_N + j] += uintBitsToFloat(x[i].tail.x) * chunk_sum(c, codes, x[i]);
            }
        }
    }
}

void main() {
    mark_executed();
    const uint index = gl_SubgroupID * SUBGROUP + gl_SubgroupInvocationID;
    const uint lane = index % LANES_N, part = index / LANES_N;
    const uint block = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    const uint first = block * LANES_N * THREAD_N;
    const uint m0 = gl_WorkGroupID.z * COLUMNS;
    [[unroll]] for (uint g = 0u; g < GROUPS_N; ++g)
        row[g] = min(first + (g * LANES_N + lane) * LOAD_N, P.rows - LOAD_N);
    [[unroll]] for (uint a = 0u; a < SUMS; ++a) acc[a] = 0.0;

#if X_SHARED && EIGHT_LANES
    // Memory answers in order: the first activations are asked for before the first weights, the others after.
    vec4 x_first[X_FIRST];
    [[unroll]] for (uint i = 0u; i < X_FIRST; ++i) x_first[i] = X[x_vector(m0, min(i * THREADS + index, X_VECTORS - 1u))];
    fetch(first_chunk(0u, part));
    [[unroll]] for (uint i = 0u; i < X_FIRST; ++i)
        if (X_FIRST * THREADS <= X_VECTORS || i * THREADS + index < X_VECTORS) stage_x(i * THREADS + index, x_first[i]);
    for (uint at = X_FIRST * THREADS + index; at < X_VECTORS; at += THREADS) stage_x(at, X[x_vector(m0, at)]);
    barrier();
#else
    // The first weights are on their way while activations are quantized.
    fetch(first_chunk(0u, part));
#endif
#if X_SHARED && !EIGHT_LANES
    for (uint at = index; at < COLUMNS * CHUNKS_K; at += THREADS) {
        const uint m = min(m0 + at / CHUNKS_K, P.m - 1u);
        const XChunk q = quantize_chunk(8u * (m * CHUNKS_K + at % CHUNKS_K));
        x_codes[2u * at] = q.codes[0];
        x_codes[2u * at + 1u] = q.codes[1];
        x_tails[at] = q.tail;
    }
    barrier();
#endif
    UNROLL for (uint step = 0u; step < STEPS; ++step) {
#if PREFETCH
        WideWords words[CHUNKS * GROUPS_N] = ahead;
        if (step + 1u < STEPS) fetch(first_chunk(step + 1u, part));
        multiply(words, first_chunk(step, part), m0);
#else
        multiply(ahead, first_chunk(step, part), m0);
        if (step + 1u < STEPS) fetch(first_chunk(step + 1u, part));
#endif
    }

#if SHUFFLE_SUMS
    // Each pair of lanes adds the same two numbers, so that all of them hold the same sum.
    [[unroll]] for (uint distance = LANES_N; distance < SUBGROUP; distance *= 2u)
        [[unroll]] for (uint a = 0u; a < SUMS; ++a) acc[a] += subgroupShuffleXor(acc[a], distance);
#endif
#if PARTIAL_SUMS
    if (index % TOGETHER < LANES_N)
        [[unroll]] for (uint a = 0u; a < SUMS; ++a) partial[(index / TOGETHER * SUMS + a) * LANES_N + lane] = acc[a];
    barrier();
    for (uint at = index; at < SUMS * LANES_N; at += THREADS) {
        const uint a = at / LANES_N, j = a % THREAD_N, m = m0 + a / THREAD_N;
        const uint n = first + (j / LOAD_N * LANES_N + at % LANES_N) * LOAD_N + j % LOAD_N;
        float sum = partial[at];
        for (uint p = 1u; p < PARTIALS; ++p) sum += partial[p * SUMS * LANES_N + at];
        if (n < P.rows && m < P.m) Y[m * P.y_stride + P.row0 + n] = sum;
    }
#else
    if (index % TOGETHER < LANES_N)
        [[unroll]] for (uint a = 0u; a < SUMS; ++a) {
            const uint j = a % THREAD_N, m = m0 + a / THREAD_N;
            const uint n = first + (j / LOAD_N * LANES_N + lane) * LOAD_N + j % LOAD_N;
            if (n < P.rows && m < P.m) Y[m * P.y_stride + P.row0 + n] = acc[a];
        }
#endif
}
