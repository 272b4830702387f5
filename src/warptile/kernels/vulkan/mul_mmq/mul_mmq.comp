// One workgroup computes a TILE_N x TILE_M block of Y from int8 words: BK_STEP chunks of 32 weights and activations at a
// time are staged in shared memory, dotted there in whole numbers, and scaled into fp32 sums that stay in registers.
//
// A staged weight chunk is W_WORDS of codes (as packed, or int8 words ready for the dot where INT8_STAGED) and
// SCALE_WORDS of scales; a staged activation chunk is eight int8 words and its scale, as the pre-pass left it.

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;

layout(constant_id = 0) const uint BLOCK_SIZE = 128u;
layout(constant_id = 1) const uint TILE_N = 64u;
layout(constant_id = 2) const uint TILE_M = 64u;
layout(constant_id = 4) const uint WARP_N = 32u;
layout(constant_id = 5) const uint WARP_M = 32u;
layout(constant_id = 6) const uint WARP_ITERATIONS_N = 2u;
layout(constant_id = 7) const uint THREAD_N = 4u;
layout(constant_id = 8) const uint THREAD_M = 2u;
layout(constant_id = 10) const uint SUBGROUP = 32u;
layout(constant_id = 11) const uint BK_STEP = 4u;

const uint WARP_ITERATIONS_M = (WARP_N * WARP_M) / (SUBGROUP * THREAD_N * THREAD_M * WARP_ITERATIONS_N);
const uint PASS_N = WARP_N / WARP_ITERATIONS_N;
const uint PASS_M = WARP_M / WARP_ITERATIONS_M;
const uint LANES_N = PASS_N / THREAD_N;
const uint WARPS_N = TILE_N / WARP_N;
const uint ROWS_N = WARP_ITERATIONS_N * THREAD_N;
const uint ROWS_M = WARP_ITERATIONS_M * THREAD_M;
const uint W_WORDS = INT8_STAGED ? 8u : CODE_WORDS;
const uint W_STRIDE = W_WORDS + SCALE_WORDS;
const uint X_STRIDE = 9u;

shared uint tile_w[BK_STEP * TILE_N * W_STRIDE];
shared uint tile_x[BK_STEP * TILE_M * X_STRIDE];

void stage_scales(uint at, Chunk c) {
#if PAIRED_SCALES == 1
    tile_w[at] = packHalf2x16(PAIR(c));
#elif PAIRED_SCALES == 2
    tile_w[at] = packHalf2x16(c.d);
    tile_w[at + 1u] = packHalf2x16(c.m);
#else
    float scale[SCALE_WORDS] = SCALES(c);
    [[unroll]] for (uint i = 0u; i < SCALE_WORDS; ++i) tile_w[at + i] = floatBitsToUint(scale[i]);
#endif
}

#ifndef BLOCK_LOADER
void stage_weights(uint first_row, uint first_chunk) {
    // Rows run fastest over threads, as they do in the packed planes: neighbouring lanes read neighbouring words.
    [[dont_unroll]] for (uint item = gl_LocalInvocationIndex; item < TILE_N * BK_STEP; item += BLOCK_SIZE) {
        const uint row = item % TILE_N;
        const uint chunk = first_chunk + item / TILE_N;
        const uint at = item * W_STRIDE;
        if (first_row + row < P.rows && chunk < P.k / 32u) {
            const Chunk c = load_chunk(first_row + row, chunk, P.rows);
            if (INT8_STAGED) {
                [[unroll]] for (uint i = 0u; i < 8u; ++i) tile_w[at + i] = uint(codes_s4(c, i));
            } else {
                uint words[CODE_WORDS];
                put_codes(c, words);
                [[unroll]] for (uint i = 0u; i < CODE_WORDS; ++i) tile_w[at + i] = words[i];
            }
            stage_scales(at + W_WORDS, c);
        } else {
            [[unroll]] for (uint i = 0u; i < W_STRIDE; ++i) tile_w[at + i] = 0u;
        }
    }
}
#else
void put_quad(uint digits, uint quad, uint chunk, uint row) {
    const uint codes = ((digits | 0x80808080u) - 0x01010101u) ^ 0x80808080u;
    tile_w[((chunk + quad / 8u) * TILE_N + row) * W_STRIDE + quad % 8u] = codes;
}

STAGE_BLOCK
void stage_weights(uint first_row, uint first_chunk) {
    [[dont_unroll]] for (uint item = gl_LocalInvocationIndex; item < TILE_N * BK_STEP; item += BLOCK_SIZE) {
        const uint row = item % TILE_N;
        const uint chunk = first_chunk + item / TILE_N;
        const uint at = item * W_STRIDE;
        if (first_row + row < P.rows && chunk < P.k / 32u) {
            stage_scales(at + W_WORDS, load_chunk(first_row + row, chunk, P.rows));
        } else {
            [[unroll]] for (uint i = 0u; i < W_STRIDE; ++i) tile_w[at + i] = 0u;
        }
    }
    // LANES neighbouring threads share a block: a word each.
    const uint blocks = BK_STEP / BLOCK_CHUNKS;
    [[dont_unroll]] for (uint item = gl_LocalInvocationIndex; item < TILE_N * blocks * LANES; item += BLOCK_SIZE) {
        const uint lane = item % LANES;
        const uint row = (item / LANES) % TILE_N;
        const uint block = item / (LANES * TILE_N);
        if (first_row + row < P.rows && first_chunk + block * BLOCK_CHUNKS < P.k / 32u) {
            const uint word = P.plane[0] + ((first_chunk / BLOCK_CHUNKS + block) * BLOCK_WORDS) * P.rows + first_row + row;
            stage_block(word, lane, block * BLOCK_CHUNKS, row);
        }
    }
}
#endif

void stage_activations(uint first_token, uint first_chunk) {
    const uint row_words = P.k / 32u * X_STRIDE;
    const uint step_words = BK_STEP * X_STRIDE;
    [[dont_unroll]] for (uint item = gl_LocalInvocationIndex; item < TILE_M * step_words; item += BLOCK_SIZE) {
        const uint token = item / step_words;
        const uint word = item % step_words;
        const uint from = first_chunk * X_STRIDE + word;
        const bool inside = first_token + token < P.m && from < row_words;
        uint x = 0u;
        if (inside) x = X[(first_token + token) * row_words + from];
        tile_x[((word / X_STRIDE) * TILE_M + token) * X_STRIDE + word % X_STRIDE] = x;
    }
}

void main() {
    mark_executed();
    const uint first_row = gl_WorkGroupID.x * TILE_N;
    const uint first_token = gl_WorkGroupID.y * TILE_M;
    const uint warp = gl_LocalInvocationIndex / SUBGROUP;
    const uint lane = gl_LocalInvocationIndex % SUBGROUP;
    const uint row = (warp % WARPS_N) * WARP_N + (lane % LANES_N) * THREAD_N;
    const uint token = (warp / WARPS_N) * WARP_M + (lane / LANES_N) * THREAD_M;

    float sums[ROWS_N * ROWS_M];
    [[unroll]] for (uint i = 0u; i < ROWS_N * ROWS_M; ++i) sums[i] = 0.0;

    const uint chunks = P.k / 32u;
    [[dont_unroll]] for (uint first_chunk = 0u; first_chunk < chunks; first_chunk += BK_STEP) {
        stage_weights(first_row, first_chunk);
        stage_activations(first_token, first_chunk);
        barrier();
        [[dont_unroll]] for (uint chunk = 0u; chunk < BK_STEP; ++chunk) {
            int w[ROWS_N * 8u];
            GROUPED scale[ROWS_N];
            GROUPED minimum[ROWS_N];
            [[unroll]] for (uint r = 0u; r < ROWS_N; ++r) {
                const uint at = (chunk * TILE_N + row + (r / THREAD_N) * PASS_N + r % THREAD_N) * W_STRIDE;
                if (INT8_STAGED) {
                    [[unroll]] for (uint i = 0u; i < 8u; ++i) w[r * 8u + i] = int(tile_w[at + i]);
                } else {
                    uint words[CODE_WORDS];
                    [[unroll]] for (uint i = 0u; i < CODE_WORDS; ++i) words[i] = tile_w[at + i];
                    Chunk c;
                    take_codes(c, words);
                    [[unroll]] for (uint i = 0u; i < 8u; ++i) w[r * 8u + i] = codes_s4(c, i);
                }
#if PAIRED_SCALES == 1
                UNPAIR(unpackHalf2x16(tile_w[at + W_WORDS]), scale[r], minimum[r]);
#elif PAIRED_SCALES == 2
                scale[r] = unpackHalf2x16(tile_w[at + W_WORDS]);
                minimum[r] = unpackHalf2x16(tile_w[at + W_WORDS + 1u]);
#else
                [[unroll]] for (uint g = 0u; g < GROUPS; ++g) {
                    AT(scale[r], g) = uintBitsToFloat(tile_w[at + W_WORDS + g]);
                    if (HAS_MINIMUM) AT(minimum[r], g) = uintBitsToFloat(tile_w[at + W_WORDS + GROUPS + g]);
                }
#endif
            }
            [[unroll]] for (uint t = 0u; t < ROWS_M; ++t) {
                const uint at = (chunk * TILE_M + token + (t / THREAD_M) * PASS_M + t % THREAD_M) * X_STRIDE;
                int x[8];
                [[unroll]] for (uint i = 0u; i < 8u; ++i) x[i] = int(tile_x[at + i]);
                const float x_scale = uintBitsToFloat(tile_x[at + 8u]);
                float x_sum[GROUPS];
                if (HAS_MINIMUM) {
                    [[unroll]] for (uint g = 0u; g < GROUPS; ++g) {
                        int s = 0;
                        [[unroll]] for (uint i = 0u; i < 8u / GROUPS; ++i) s += dot4(0x01010101, x[g * 8u / GROUPS + i]);
                        x_sum[g] = float(s);
                    }
                }
                [[unroll]] for (uint r = 0u; r < ROWS_N; ++r) {
                    float chunk_sum = 0.0;
                    [[unroll]] for (uint g = 0u; g < GROUPS; ++g) {
                        int dots = 0;
                        [[unroll]] for (uint i = 0u; i < 8u / GROUPS; ++i) {
                            dots += dot4(w[r * 8u + g * 8u / GROUPS + i], x[g * 8u / GROUPS + i]);
                        }
                        chunk_sum += AT(scale[r], g) * float(dots);
                        if (HAS_MINIMUM) chunk_sum -= AT(minimum[r], g) * x_sum[g];
                    }
                    sums[t * ROWS_N + r] += x_scale * chunk_sum;
                }
            }
        }
        barrier();
    }

    [[unroll]] for (uint t = 0u; t < ROWS_M; ++t) {
        const uint y_row = first_token + token + (t / THREAD_M) * PASS_M + t % THREAD_M;
        if (y_row < P.m) {
            [[unroll]] for (uint r = 0u; r < ROWS_N; ++r) {
                const uint y_column = first_row + row + (r / THREAD_N) * PASS_N + r % THREAD_N;
                if (y_column < P.rows) Y[y_row * P.y_stride + P.row0 + y_column] = sums[t * ROWS_N + r];
            }
        }
    }
}
