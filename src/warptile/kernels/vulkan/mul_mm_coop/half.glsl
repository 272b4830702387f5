// What fp16 kernels share. Within 8 elements e0..e7 of k, operands are kept as pairs (e0, e2), (e1, e3), (e4, e6),
// (e5, e7): codes come one a byte, so that one mask takes every other code and no byte is moved. Both operands are in this
// order, so the sum over k is the same sum.

#define HALF_PAIR(a, b) packFloat2x16(f16vec2(float16_t(a), float16_t(b)))

#if X_HALF
struct XUnit { uvec4 v; };
XUnit read_x(uint row, uint unit) { return XUnit(X[row * (P.k / 8u) + unit]); }
XUnit no_x() { return XUnit(uvec4(0u)); }
uvec4 x_pairs(XUnit x) {
    uvec4 v = x.v;
    return uvec4((v.x & 0xffffu) | (v.y << 16), (v.x >> 16) | (v.y & 0xffff0000u),
                 (v.z & 0xffffu) | (v.w << 16), (v.z >> 16) | (v.w & 0xffff0000u));
}
#else
struct XUnit { vec4 a; vec4 b; };
XUnit read_x(uint row, uint unit) {
    uint at = row * (P.k / 4u) + 2u * unit;
    return XUnit(X[at], X[at + 1u]);
}
XUnit no_x() { return XUnit(vec4(0.0), vec4(0.0)); }
uvec4 x_pairs(XUnit x) {
    return uvec4(HALF_PAIR(x.a.x, x.a.z), HALF_PAIR(x.a.y, x.a.w), HALF_PAIR(x.b.x, x.b.z), HALF_PAIR(x.b.y, x.b.w));
}
#endif

// Scale and minimum of each group of a chunk, from words loaded before.
struct Scale { float d[GROUPS_A_CHUNK]; float m[GROUPS_A_CHUNK]; };
Scale scale_of(ScaleWords words, uint row, uint chunk) {
    Chunk c = scaled(words, row, chunk, P.rows);
    Scale s;
#if GROUPS_A_CHUNK == 2
    s.d[0] = c.d.x; s.d[1] = c.d.y;
    s.m[0] = SCALE_M(c).x; s.m[1] = SCALE_M(c).y;
#else
    s.d[0] = c.d;
    s.m[0] = SCALE_M(c);
#endif
    return s;
}

// Four codes, one a byte, to the pairs (c0, c2), (c1, c3) of weights.
#if DECODE_FP16
// scale: (d, -m) as two fp16. A code below 256 in the low bits of 1024.0 is the exact fp16 number 1024 + code.
uint scale_word(float d, float m) { return HALF_PAIR(d, -m); }
#if SUBNORMAL
// A code alone in the low bits of a half is the subnormal number code * 2^-24: nothing is added and taken off again. A row's
// weights are kept in units of 2^e, scales 2^24 times as large beside. e = 6 takes scales up to 1/4; where a row has larger
// ones, `largest` notes it and everything is summed again with an e for that row: s < 2^(E + 1) takes e = E + 10.
shared uint largest[TILE_N];
const float SUBNORMAL_SCALES = 0.249;
uint unit_exponent(uint row) { return largest[row] == 0u ? 6u : min((largest[row] >> 23) - 117u, 40u); }
float power_of_two(int e) { return uintBitsToFloat(uint(127 + e) << 23); }
uvec2 subnormal_pairs(Octet o, uint h, uint scale) {
    f16vec2 s = unpackFloat2x16(scale);
    if (h == 1u) s *= f16vec2(0.0625hf, 1.0hf);
    return uvec2(packFloat2x16(fma(unpackFloat2x16(octet_nibbles(o, h, 0u)), s.xx, s.yy)),
                 packFloat2x16(fma(unpackFloat2x16(octet_nibbles(o, h, 1u)), s.xx, s.yy)));
}
#endif
uvec2 weight_pairs(uint codes, uint scale) {
    f16vec2 s = unpackFloat2x16(scale);
#if CODEBOOK
    vec4 v = codebook4(bytes4(codes));
    f16vec2 low = f16vec2(v.x, v.z), high = f16vec2(v.y, v.w);
#else
    f16vec2 low = unpackFloat2x16((codes & 0x00ff00ffu) | 0x64006400u) - f16vec2(CODE_ZERO);
    f16vec2 high = unpackFloat2x16(((codes >> 8) & 0x00ff00ffu) | 0x64006400u) - f16vec2(CODE_ZERO);
#endif
    return uvec2(packFloat2x16(fma(low, s.xx, s.yy)), packFloat2x16(fma(high, s.xx, s.yy)));
}
#if NIBBLES
// The same of an octet's elements 4h .. 4h + 3: codes stay where they are in the word, as 1024 + 16^h times the code.
uvec2 octet_pairs(Octet o, uint j, uint h, uint scale) {
    const f16vec2 s = unpackFloat2x16(scale);
    f16vec2 low = unpackFloat2x16(octet_nibbles(o, h, 0u) | 0x64006400u);
    f16vec2 high = unpackFloat2x16(octet_nibbles(o, h, 1u) | 0x64006400u);
    if (h == 0u) {
        low -= f16vec2(CODE_ZERO);
        high -= f16vec2(CODE_ZERO);
    } else {
        low = fma(low, f16vec2(0.0625hf), f16vec2(960.0hf - CODE_ZERO));
        high = fma(high, f16vec2(0.0625hf), f16vec2(960.0hf - CODE_ZERO));
    }
    return uvec2(packFloat2x16(fma(low, s.xx, s.yy)), packFloat2x16(fma(high, s.xx, s.yy)));
}
#else
uvec2 octet_pairs(Octet o, uint j, uint h, uint scale) { return weight_pairs(octet4(o, j, h), scale); }
#endif
#else
uvec2 weight_pairs(uint codes, float d, float m) {
#if CODEBOOK
    vec4 v = codebook4(bytes4(codes)) * d;
#else
    vec4 v = vec4(bytes4(codes)) * d - m;
#endif
    return uvec2(HALF_PAIR(v.x, v.z), HALF_PAIR(v.y, v.w));
}
#endif

const uint UNITS = K_CHUNK / 8u;         // units of 8 elements, 16 bytes, a row
const uint ROW = UNITS + 1u;             // one spare unit a row keeps neighbouring rows in different banks
const uint X_STAGE = TILE_M * ROW;
const uint CHUNKS = K_CHUNK / 32u;

shared uvec4 pool[POOL];

uint tid, m0, n0, k_end;
XUnit x_ahead[X_EACH];

void fetch_x(uint k) {
    [[unroll]] for (uint i = 0u; i < X_EACH; ++i) {
        uint at = i * THREADS + tid, unit = k / 8u + at % UNITS;
        x_ahead[i] = no_x();
        if (unit * 8u < k_end) x_ahead[i] = read_x(min(m0 + at / UNITS, P.m - 1u), unit);
    }
}

#define A_MATRIX coopmat<float16_t, gl_ScopeSubgroup, MATRIX_M, MATRIX_K, gl_MatrixUseA>
#define B_MATRIX coopmat<float16_t, gl_ScopeSubgroup, MATRIX_K, MATRIX_N, gl_MatrixUseB>
#define SUMS coopmat<SUM_TYPE, gl_ScopeSubgroup, MATRIX_M, MATRIX_N, gl_MatrixUseAccumulator>
