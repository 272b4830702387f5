// One workgroup computes a TILE_N x TILE_M block of Y: weights decoded and activations copied to shared memory a step
// of TILE_K at a time, then multiplied from there into sums that stay in registers.
//
// A shared row holds TILE_K elements in pairs, and one spare pair so that neighbouring rows start in different banks.
// PAIR is f16vec2 or vec2.

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;

layout(constant_id = 0) const uint BLOCK_SIZE = 128u;
layout(constant_id = 1) const uint TILE_N = 64u;
layout(constant_id = 2) const uint TILE_M = 64u;
layout(constant_id = 3) const uint TILE_K = 32u;
layout(constant_id = 4) const uint WARP_N = 32u;
layout(constant_id = 5) const uint WARP_M = 32u;
layout(constant_id = 6) const uint WARP_ITERATIONS_N = 2u;
layout(constant_id = 7) const uint THREAD_N = 4u;
layout(constant_id = 8) const uint THREAD_M = 2u;
layout(constant_id = 10) const uint SUBGROUP = 32u;
// Threads that share one row's chunk of 32 weights while decoding it: 1, 2, 4 or 8.
layout(constant_id = 11) const uint PARTS = 1u;

const uint WARP_ITERATIONS_M = (WARP_N * WARP_M) / (SUBGROUP * THREAD_N * THREAD_M * WARP_ITERATIONS_N);
const uint PASS_N = WARP_N / WARP_ITERATIONS_N;
const uint PASS_M = WARP_M / WARP_ITERATIONS_M;
const uint LANES_N = PASS_N / THREAD_N;
const uint WARPS_N = TILE_N / WARP_N;
const uint ROWS_N = WARP_ITERATIONS_N * THREAD_N;
const uint ROWS_M = WARP_ITERATIONS_M * THREAD_M;
const uint CHUNKS = TILE_K / 32u;
const uint QUADS = TILE_K / 4u;
const uint STRIDE = TILE_K / 2u + 1u;
const uint PART_QUADS = 8u / PARTS;

shared PAIR tile_w[TILE_N * STRIDE];
shared PAIR tile_x[TILE_M * STRIDE];

// Which rows of x and y a workgroup has: TILE_M in order, unless a kernel says otherwise (`experts.glsl`).
#ifndef TOKENS
#define BEGIN_TILE
#define FIRST_TOKEN(block) ((block) * TILE_M)
#define TOKENS P.m
#define TILE_CHUNKS (P.k / 32u)
#define X_ROW(token) (token)
#define Y_ROW(token) (token)
#endif

void stage_weights(uint first_row, uint first_chunk) {
    // Rows run fastest over threads, as they do in the packed planes: neighbouring lanes read neighbouring words.
    [[dont_unroll]] for (uint item = gl_LocalInvocationIndex; item < TILE_N * CHUNKS * PARTS; item += BLOCK_SIZE) {
        const uint row = item % TILE_N;
        const uint chunk = (item / TILE_N) % CHUNKS;
        const uint part = item / (TILE_N * CHUNKS);
        const uint at = row * STRIDE + chunk * 16u;
        const bool inside = first_row + row < P.rows && first_chunk + chunk < P.k / 32u;
        // A branch a part keeps decode4's index constant and drops the words that the part does not need.
        [[unroll]] for (uint p = 0u; p < PARTS; ++p) {
            if (part == p && inside) {
                const Chunk c = load_chunk(first_row + row, first_chunk + chunk, P.rows);
                [[unroll]] for (uint q = 0u; q < PART_QUADS; ++q) {
                    const vec4 w = decode4(c, p * PART_QUADS + q);
                    tile_w[at + 2u * (p * PART_QUADS + q)] = PAIR(w.xy);
                    tile_w[at + 2u * (p * PART_QUADS + q) + 1u] = PAIR(w.zw);
                }
            }
        }
        if (!inside) {
            [[unroll]] for (uint q = 0u; q < 2u * PART_QUADS; ++q) tile_w[at + 2u * part * PART_QUADS + q] = PAIR(0.0);
        }
    }
}

void stage_activations(uint first_token, uint first_chunk) {
    const uint row_quads = P.k / 4u;
    [[dont_unroll]] for (uint item = gl_LocalInvocationIndex; item < TILE_M * QUADS; item += BLOCK_SIZE) {
        const uint quad = item % QUADS;
        const uint token = item / QUADS;
        const bool inside = first_token + token < TOKENS && first_chunk * 8u + quad < row_quads;
        vec4 x = vec4(0.0);
        if (inside) x = X[X_ROW(first_token + token) * row_quads + first_chunk * 8u + quad];
        tile_x[token * STRIDE + 2u * quad] = PAIR(x.xy);
        tile_x[token * STRIDE + 2u * quad + 1u] = PAIR(x.zw);
    }
}

void main() {
    mark_executed();
    BEGIN_TILE
    const uint first_row = gl_WorkGroupID.x * TILE_N;
    const uint first_token = FIRST_TOKEN(gl_WorkGroupID.y);
    const uint warp = gl_LocalInvocationIndex / SUBGROUP;
    const uint lane = gl_LocalInvocationIndex % SUBGROUP;
    const uint row = (warp % WARPS_N) * WARP_N + (lane % LANES_N) * THREAD_N;
    const uint token = (warp / WARPS_N) * WARP_M + (lane / LANES_N) * THREAD_M;

    float sums[ROWS_N * ROWS_M];
    [[unroll]] for (uint i = 0u; i < ROWS_N * ROWS_M; ++i) sums[i] = 0.0;

    const uint chunks = TILE_CHUNKS;
    [[dont_unroll]] for (uint first_chunk = 0u; first_chunk < chunks; first_chunk += CHUNKS) {
        stage_weights(first_row, first_chunk);
        stage_activations(first_token, first_chunk);
        barrier();
        [[dont_unroll]] for (uint pair = 0u; pair < TILE_K / 2u; ++pair) {
            vec2 w[ROWS_N];
            [[unroll]] for (uint i = 0u; i < WARP_ITERATIONS_N; ++i) {
                [[unroll]] for (uint j = 0u; j < THREAD_N; ++j) {
                    w[i * THREAD_N + j] = vec2(tile_w[(row + i * PASS_N + j) * STRIDE + pair]);
                }
            }
            [[unroll]] for (uint i = 0u; i < WARP_ITERATIONS_M; ++i) {
                [[unroll]] for (uint j = 0u; j < THREAD_M; ++j) {
                    const vec2 x = vec2(tile_x[(token + i * PASS_M + j) * STRIDE + pair]);
                    [[unroll]] for (uint r = 0u; r < ROWS_N; ++r) {
                        const uint s = (i * THREAD_M + j) * ROWS_N + r;
                        sums[s] = fma(w[r].y, x.y, fma(w[r].x, x.x, sums[s]));
                    }
                }
            }
        }
        barrier();
    }

    [[unroll]] for (uint i = 0u; i < WARP_ITERATIONS_M; ++i) {
        [[unroll]] for (uint j = 0u; j < THREAD_M; ++j) {
            const uint y_row = first_token + token + i * PASS_M + j;
            if (y_row < TOKENS) {
                [[unroll]] for (uint r = 0u; r < ROWS_N; ++r) {
                    const uint y_column = first_row + row + (r / THREAD_N) * PASS_N + r % THREAD_N;
                    if (y_column < P.rows) Y[Y_ROW(y_row) * P.y_stride + P.row0 + y_column] = sums[(i * THREAD_M + j) * ROWS_N + r];
                }
            }
        }
    }
}
