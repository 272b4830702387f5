// One register tile: THREAD_M rows of x against THREAD_N rows of w a lane, one chunk of 32 along k at a time.
// Before it: constants THREAD_N, THREAD_M, LOAD_N (rows of w fetched together) and SUBGROUP, one X_ACCESS_* macro,
// YVector (LOAD_N floats), Y_ELEMENTS(a) (its constructor), and the layout's decoder.

const uint GROUPS = THREAD_N / LOAD_N;

// Which rows of x and y a workgroup has: all in order, unless a kernel says otherwise (`experts.glsl`).
#ifndef TOKENS
#define BEGIN_TILE
#define FIRST_TOKEN(block) ((block) * THREAD_M)
#define TOKENS P.m
#define TILE_CHUNKS (P.k / 32u)
#define X_ROW(token) (token)
#define Y_ROW(token) (token)
#endif

#if defined(X_ACCESS_DIRECT)

// Every lane reads the activations it needs.
const uint X_ROWS = 1u;
struct XPart { uint base; };
XPart fetch_x(uint row, uint chunk) {
    return XPart(X_ROW(min(row, TOKENS - 1u)) * (P.k / 4u) + chunk * 8u);
}
vec4 x4(XPart part, uint r, uint i) { return X[part.base + i]; }

#elif defined(X_ACCESS_SHUFFLE)

// Eight lanes read one row's chunk, four elements each, and hand them round.
const uint X_ROWS = min(SUBGROUP / 8u, THREAD_M);
struct XPart { vec4 mine; };
XPart fetch_x(uint row, uint chunk) {
    uint lane = gl_SubgroupInvocationID;
    return XPart(X[X_ROW(min(row + lane / 8u, TOKENS - 1u)) * (P.k / 4u) + chunk * 8u + lane % 8u]);
}
vec4 x4(XPart part, uint r, uint i) { return subgroupShuffle(part.mine, r * 8u + i); }

#elif defined(X_ACCESS_SHUFFLE64)

// Four lanes read one row's chunk, eight elements each as four 64-bit words, and hand them round.
layout(std430, set = 0, binding = 0) readonly buffer XPairBuffer { u64vec4 XPairs[]; };
const uint X_ROWS = min(SUBGROUP / 4u, THREAD_M);
struct XPart { vec4 low; vec4 high; };
XPart fetch_x(uint row, uint chunk) {
    uint lane = gl_SubgroupInvocationID;
    u64vec4 pairs = XPairs[X_ROW(min(row + lane / 4u, TOKENS - 1u)) * (P.k / 8u) + chunk * 4u + lane % 4u];
    return XPart(
        uintBitsToFloat(uvec4(unpackUint2x32(pairs.x), unpackUint2x32(pairs.y))),
        uintBitsToFloat(uvec4(unpackUint2x32(pairs.z), unpackUint2x32(pairs.w))));
}
vec4 x4(XPart part, uint r, uint i) {
    return subgroupShuffle((i & 1u) == 0u ? part.low : part.high, r * 4u + i / 2u);
}

#endif

uint row[GROUPS];                  // first row of w of each group of LOAD_N
float acc[THREAD_M * THREAD_N];    // y[m0 + i, row of j] in the making, at i * THREAD_N + j

// Rows stay inside the slice: a group past the end repeats the last one.
void start_tile(uint first, uint step) {
    [[unroll]] for (uint g = 0u; g < GROUPS; ++g) row[g] = min(first + g * step, P.rows - LOAD_N);
    [[unroll]] for (uint a = 0u; a < THREAD_M * THREAD_N; ++a) acc[a] = 0.0;
}

// acc += sum over the chunk's 32 elements of x[m0 + i] * w[row of j].
void multiply_chunk(uint chunk, uint m0) {
    vec4 w[8 * THREAD_N];
    [[unroll]] for (uint g = 0u; g < GROUPS; ++g) {
        Chunk packed[LOAD_N];
        load_chunks(row[g], chunk, P.rows, packed);
        [[unroll]] for (uint e = 0u; e < LOAD_N; ++e)
            [[unroll]] for (uint s = 0u; s < 8u; ++s) w[(g * LOAD_N + e) * 8u + s] = decode4(packed[e], s);
    }
    [[unroll]] for (uint i0 = 0u; i0 < THREAD_M; i0 += X_ROWS) {
        XPart part = fetch_x(m0 + i0, chunk);
        [[unroll]] for (uint r = 0u; r < X_ROWS; ++r)
            [[unroll]] for (uint s = 0u; s < 8u; ++s)
                if (i0 + r < THREAD_M) {
                    vec4 x = x4(part, r, s);
                    [[unroll]] for (uint j = 0u; j < THREAD_N; ++j)
                        acc[(i0 + r) * THREAD_N + j] += dot(w[j * 8u + s], x);
                }
    }
}

layout(std430, set = 0, binding = 2) writeonly buffer YVectorBuffer { YVector YVectors[]; };

// y[m0 + i, row0 + first + g * step + e] = acc, where both indices are inside.
void store_tile(uint first, uint step, uint m0) {
    [[unroll]] for (uint g = 0u; g < GROUPS; ++g)
        [[unroll]] for (uint i = 0u; i < THREAD_M; ++i) {
            uint n = first + g * step;
            uint a = i * THREAD_N + g * LOAD_N;
            if (n < P.rows && m0 + i < TOKENS)
                YVectors[(Y_ROW(m0 + i) * P.y_stride + P.row0 + n) / LOAD_N] = YVector(Y_ELEMENTS(a));
        }
}
