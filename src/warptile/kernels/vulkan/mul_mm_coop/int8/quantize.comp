// x[m, k] to int8 codes s8[rows, k] with one fp32 scale a block of X_BLOCK elements, f32[k / X_BLOCK, rows], and, where the
// weights need them, sums of codes; rows and k are padded with zeros. scale = (largest |x|) / 127, code = round(x / scale).
// A block of zeros has scale 0; one that holds a value that is not finite has scale NaN. A thread takes four elements, a
// workgroup's threads share its blocks.
layout(local_size_x = THREADS) in;

const uint BLOCK_LANES = X_BLOCK / 4u;         // threads a block
const uint FEW = min(8u, BLOCK_LANES);   // threads that find their largest together, before a block does
shared uint top[THREADS];                // magnitudes as bits: NaN is above infinity, infinity above all numbers
shared uint few_top[THREADS / FEW];
shared int part[THREADS];

vec4 read_x(uint row, uint k) {
    if (row >= P.m || k >= P.k) return vec4(0.0);
#if X_HALF
    uvec2 h = X[(row * P.k + k) / 4u];
    return vec4(unpackHalf2x16(h.x), unpackHalf2x16(h.y));
#else
    return X[(row * P.k + k) / 4u];
#endif
}

void main() {
    mark_executed();
    const uint tid = gl_LocalInvocationIndex;
    const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    const uint at = (group * THREADS + tid) * 4u, row = at / P.x_k, k = at % P.x_k;
    const bool inside = row < P.x_m;
    vec4 x = inside ? read_x(row, k) : vec4(0.0);
    uvec4 size = floatBitsToUint(x) & 0x7fffffffu;
    top[tid] = max(max(size.x, size.y), max(size.z, size.w));
    barrier();
    uint largest = 0u;
    [[unroll]] for (uint i = 0u; i < FEW; ++i) largest = max(largest, top[tid / FEW * FEW + (tid + i) % FEW]);
    const uint first = tid / BLOCK_LANES * BLOCK_LANES;
    if (BLOCK_LANES > FEW) {
        if (tid % FEW == 0u) few_top[tid / FEW] = largest;
        barrier();
        [[unroll]] for (uint i = 0u; i < BLOCK_LANES / FEW; ++i) largest = max(largest, few_top[first / FEW + i]);
    }
    // A product is rounded correctly where a quotient need not be: a block whose largest value is 127 has scale 1.
    const float scale = uintBitsToFloat(largest) * (1.0 / 127.0);
    // Below the smallest normal number its inverse may be infinite: such a block counts as zero.
    const float inverse = scale >= 1.17549435e-38 ? 1.0 / scale : 0.0;
    const ivec4 code = ivec4(clamp(roundEven(x * inverse), -127.0, 127.0));
    if (inside) {
        const uvec4 byte = uvec4(code) & 255u;
        Y[at / 4u] = byte.x | (byte.y << 8) | (byte.z << 16) | (byte.w << 24);
        if (tid == first)
            Y[P.x_scales + k / X_BLOCK * P.x_m + row] = largest < 0x7f800000u ? floatBitsToUint(scale) : 0x7fc00000u;
    }
#if SUM_WORDS
    part[tid] = (code.x + code.y) + (code.z + code.w);
    barrier();
    const uint words = P.x_sums + (row * (P.x_k / K_CHUNK) + k / K_CHUNK) * SUM_WORDS;
#if COLUMNS
    // A group's sum s as the fp16 pair (s - s mod 64, s mod 64), which is exact; the span's columns left over are zero.
    if (inside && k % FOLD == 0u) {
        int sum = 0;
        for (uint i = 0u; i < FOLD / 4u; ++i) sum += part[tid + i];
        const int low = sum & 63;
        const uint span = k % K_CHUNK / SPAN, place = k % SPAN / FOLD;
        Y[words + span * (COLUMNS / 2u) + place] = packHalf2x16(vec2(sum - low, low));
        if (place == 0u)
            for (uint i = SPAN / FOLD; i < COLUMNS / 2u; ++i) Y[words + span * (COLUMNS / 2u) + i] = 0u;
    }
#else
    if (inside && k % 32u == 0u) {
        ivec2 sum = ivec2(0);
        for (uint i = 0u; i < 4u; ++i) sum += ivec2(part[tid + i], part[tid + 4u + i]);
        Y[words + k % K_CHUNK / 32u] = uint(sum.x & 0xffff) | (uint(sum.y) << 16);
    }
#endif
#endif
}
