// y[m, n] = sum over blocks of x's scale * (sum over groups of w's scale * a whole-number sum of codes, less minimums), on
// cooperative matrices of int8. Whole-number sums leave the matrix unit through shared memory, two groups at a time, so that
// a lane meets sums of one column whose scales it holds, whatever order the driver keeps a matrix in.
//
// Codes with an offset stay unsigned: sum (code - offset) x = sum code x - offset sum x, in whole numbers.
layout(local_size_x = THREADS) in;

const uint AREA = MATRIX_M * MATRIX_N;
const uint CELLS = AREA / SUBGROUP;      // rows of a matrix that a lane takes, all of one column

shared int raw[WARPS * 2u * AREA];
#if SIX_BIT
shared uint six[W_SETS * W_ROWS * 4u];
void stage_scales(uint k) {
    for (uint at = w_owner; at < W_ROWS * 4u; at += W_OWNERS) {
        const uint row = global_row(at % W_ROWS), chunk = k / 256u * 8u + at / W_ROWS * 2u;
        six[(w_set * W_ROWS + at % W_ROWS) * 4u + at / W_ROWS] =
            scale_pair(row, chunk, P.rows) | (scale_pair(row, chunk + 1u, P.rows) << 16);
    }
}
#endif

void store_w(uint k) {
    [[unroll]] for (uint i = 0u; i < W_EACH; ++i) {
        uint at = i * W_OWNERS + w_owner;
        if (W_EACH * W_OWNERS == W_ROWS * CHUNKS || at < W_ROWS * CHUNKS)
            store_codes(chunk_ahead(i), w_row(at), w_chunk(at));
    }
}

// d and m of column `row` of the tile's rows in chunk `chunk` of the step.
Chunk scales_of(uint k, uint set_row, uint row, uint chunk) {
    const uint global = global_chunk(k, chunk);
#if SIX_BIT
    return scaled_pair(six[set_row * 4u + global % 8u / 2u] >> (16u * (global & 1u)), row, global, P.rows);
#else
    return scaled(load_scale_words(row, global, P.rows), row, global, P.rows);
#endif
}

// Sum of an activation row's codes under one fold.
int x_sum_under(uint row, uint k, uint fold) {
#if SUM_WORDS
#if FOLD_IS_HALF
    const int word = int(x_sum_of(row, k, fold / 2u));
    return fold % 2u == 0u ? bitfieldExtract(word, 0, 16) : word >> 16;
#else
    int sum = 0;
    [[unroll]] for (uint c = 0u; c < FOLD / 32u; ++c) {
        const int word = int(x_sum_of(row, k, fold * (FOLD / 32u) + c));
        sum += bitfieldExtract(word, 0, 16) + (word >> 16);
    }
    return sum;
#endif
#else
    return 0;
#endif
}

float sums[MATRICES_M * MATRICES_N * CELLS], inner[MATRICES_M * MATRICES_N * CELLS];
float d[MATRICES_N * FOLDS], minimum[MATRICES_N * FOLDS];

void meet() { subgroupMemoryBarrierShared(); subgroupBarrier(); }

void multiply_span(uint k, uint span, uint x_row, uint w_row, uint column, uint first) {
    const uint mine = gl_SubgroupID * 2u * AREA;
    [[FOLDED]] for (uint i = 0u; i < MATRICES_M; ++i) if (IN_X(i))
        [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j)
            [[FOLDED]] for (uint g = span * (SPAN / FOLD); g < (span + 1u) * (SPAN / FOLD); g += 2u) {
                const uint both = min(2u, (span + 1u) * (SPAN / FOLD) - g);
                meet();
                [[unroll]] for (uint q = 0u; q < both; ++q) {
                    WHOLE_SUMS whole = WHOLE_SUMS(0);
                    [[unroll]] for (uint s = 0u; s < STEPS; ++s) {
                        A_MATRIX a;
                        B_MATRIX b;
                        LOAD_A(a, x_row + i * MATRIX_M, k, x_at(g + q) + s * MATRIX_K);
                        coopMatLoad(b, w_stage, (w_row + j * MATRIX_N) * W_ROW + w_at(g + q) +
                                    s * (MATRIX_K / UNIT_BYTES), W_ROW, gl_CooperativeMatrixLayoutColumnMajor);
                        whole = coopMatMulAdd(a, b, whole);
                    }
                    coopMatStore(whole, raw, mine + q * AREA, MATRIX_N, gl_CooperativeMatrixLayoutRowMajor);
                }
                meet();
                [[unroll]] for (uint q = 0u; q < both; ++q) {
                    const uint fold = g + q;
                    [[unroll]] for (uint r = 0u; r < CELLS; ++r) {
                        const uint cell = (i * MATRICES_N + j) * CELLS + r, row = first + r;
                        int whole = raw[mine + q * AREA + row * MATRIX_N + column];
                        const int x_codes = SUM_WORDS > 0u ? x_sum_under(x_row + i * MATRIX_M + row, k, fold) : 0;
                        whole -= CODE_OFFSET * x_codes;
                        inner[cell] += d[j * FOLDS + fold] * float(whole);
                        if (HAS_MINIMUM) inner[cell] -= minimum[j * FOLDS + fold] * float(x_codes);
                    }
                }
            }
}

void scale_by_x(uint k, uint span, uint x_row, uint first) {
    [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i)
        [[unroll]] for (uint r = 0u; r < CELLS; ++r) {
            const float s = x_scale_of(x_row + i * MATRIX_M + first + r, k, span);
            [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j) {
                const uint cell = (i * MATRICES_N + j) * CELLS + r;
                sums[cell] += s * inner[cell];
                inner[cell] = 0.0;
            }
        }
}

void main() {
    mark_executed();
    place();
    const uint warp = gl_SubgroupID, lane = gl_SubgroupInvocationID;
    const uint x_row = warp % WARPS_M * (MATRICES_M * MATRIX_M), w_rows = MATRICES_N * MATRIX_N;
    const uint w_first = warp / WARPS_M * w_rows, w_row = W_SETS == 1u ? w_first : warp * w_rows;
    const uint column = lane % MATRIX_N, first = lane / MATRIX_N * CELLS;
    const uint k0 = gl_WorkGroupID.z * P.part_k;
    clear_gaps();
    [[unroll]] for (uint i = 0u; i < MATRICES_M * MATRICES_N * CELLS; ++i) sums[i] = inner[i] = 0.0;
    if (PREFETCH > 0u) { fetch_x(k0); fetch_w(k0); }
    for (uint k = k0; k < k_end; k += K_CHUNK) {
        if (PREFETCH == 0u) { fetch_x(k); fetch_w(k); }
        SYNC;                            // every warp has read what the step before staged
        store_x();
        store_w(k);
#if SIX_BIT
        if (k == k0 || k % 256u == 0u) stage_scales(k);
#endif
        SYNC;
        if (PREFETCH > 0u && k + K_CHUNK < k_end) { fetch_x(k + K_CHUNK); fetch_w(k + K_CHUNK); }
        [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j) {
            const uint row = min(n0 + w_first + j * MATRIX_N + column, P.rows - 1u);
            [[unroll]] for (uint c = 0u; c < CHUNKS; ++c) {
                Chunk s = scales_of(k, w_row + j * MATRIX_N + column, row, c);
#if GROUPS_A_CHUNK == 2
                d[j * FOLDS + 2u * c] = s.d.x; d[j * FOLDS + 2u * c + 1u] = s.d.y;
                minimum[j * FOLDS + 2u * c] = MINIMUM(s).x; minimum[j * FOLDS + 2u * c + 1u] = MINIMUM(s).y;
#else
                if (c * 32u % FOLD == 0u) {
                    d[j * FOLDS + c * 32u / FOLD] = s.d;
                    minimum[j * FOLDS + c * 32u / FOLD] = MINIMUM(s);
                }
#endif
            }
        }
        [[unroll]] for (uint span = 0u; span < SPANS; ++span) {
            multiply_span(k, span, x_row, w_row, column, first);
            if (SPAN == X_BLOCK || (k + K_CHUNK) % X_BLOCK == 0u) scale_by_x(k, span, x_row, first);
        }
    }

    [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i)
        [[unroll]] for (uint r = 0u; r < CELLS; ++r) {
            const uint m = m0 + x_row + i * MATRIX_M + first + r;
            [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j) {
                const uint n = n0 + w_first + j * MATRIX_N + column;
                if (m < P.m && n < P.rows)
                    Y[gl_WorkGroupID.z * P.part_y + m * P.y_stride + P.row0 + n] =
                        Y_TYPE(sums[(i * MATRICES_N + j) * CELLS + r]);
            }
        }
}
