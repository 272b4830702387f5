// What quantize.glsl does, of one chunk by eight neighbouring lanes, each its four elements x: neighbours read neighbouring
// vectors. Adding 1.5 * 2^23 rounds to the nearest whole number and leaves it in the lowest bits.
struct XPart { uint codes; uvec2 tail; };

XPart quantize_part(vec4 x) {
    // As whole numbers, magnitudes keep their order, and what is not finite is the largest.
    const uvec4 size = floatBitsToUint(x) & 0x7fffffffu;
    uint top = max(max(size.x, size.y), max(size.z, size.w));
    [[unroll]] for (uint distance = 1u; distance < 8u; distance *= 2u) top = max(top, subgroupShuffleXor(top, distance));
    const float scale = uintBitsToFloat(top) * (1.0 / 127.0);
    const float inverse = scale >= 1.17549435e-38 ? 1.0 / scale : 0.0;
    const uvec4 b = floatBitsToUint(fma(x, vec4(inverse), vec4(12582912.0))) & 255u;
    XPart q;
    q.codes = b.x | (b.y << 8) | (b.z << 16) | (b.w << 24);
    int sum = dot4(int(q.codes), 0x01010101);
    [[unroll]] for (uint distance = 1u; distance < 4u; distance *= 2u) sum += subgroupShuffleXor(sum, distance);
    const int other = subgroupShuffleXor(sum, 4u);
    q.tail = uvec2(top < 0x7f800000u ? floatBitsToUint(scale) : 0x7fc00000u, uint(sum) & 0xffffu | uint(other) << 16);
    return q;
}
