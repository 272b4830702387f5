// 32 activations to int8: scale = max|x| / 127, code = round(x / scale), as q8_1.comp does it, and the codes' sums.
// codes: element 4i + b in byte b of word i. tail: the fp32 scale; the sum of codes 0..15 in the low, 16..31 in the high half.
struct XChunk { uvec4 codes[2]; uvec2 tail; };

XChunk quantize_chunk(uint at) {
    vec4 x[8];
    vec4 top = vec4(0.0);
    bool finite = true;
    [[unroll]] for (uint i = 0u; i < 8u; ++i) {
        x[i] = X[at + i];
        top = max(top, abs(x[i]));
        finite = finite && all(lessThan(floatBitsToUint(x[i]) & 0x7fffffffu, uvec4(0x7f800000u)));
    }
    // A product is rounded correctly where a quotient need not be: a chunk whose largest value is 127 has scale 1.
    const float scale = max(max(top.x, top.y), max(top.z, top.w)) * (1.0 / 127.0);
    // Below the smallest normal number its inverse may be infinite: such a chunk counts as zero.
    const float inverse = scale >= 1.17549435e-38 ? 1.0 / scale : 0.0;
    XChunk q;
    ivec2 sums = ivec2(0);
    [[unroll]] for (uint i = 0u; i < 8u; ++i) {
        const ivec4 code = ivec4(clamp(roundEven(x[i] * inverse), -127.0, 127.0));
        sums[i / 4u] += (code.x + code.y) + (code.z + code.w);
        const uvec4 b = uvec4(code) & 255u;
        q.codes[i / 4u][i % 4u] = b.x | (b.y << 8) | (b.z << 16) | (b.w << 24);
    }
    q.tail = uvec2(finite ? floatBitsToUint(scale) : 0x7fc00000u, uint(sums.x) & 0xffffu | uint(sums.y) << 16);
    return q;
}
