// Activations X[m, k] to chunks of 32 in Q[m][k / 32][3]: two vectors of codes, then (scale, sums, 0, 0).
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 2) writeonly buffer QBuffer { uvec4 Q[]; };

void main() {
    mark_executed();
    const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    const uint chunk = group * 64u + gl_LocalInvocationIndex;
    if (chunk >= P.m * (P.k / 32u)) return;
    const XChunk q = quantize_chunk(8u * chunk);
    Q[3u * chunk] = q.codes[0];
    Q[3u * chunk + 1u] = q.codes[1];
    Q[3u * chunk + 2u] = uvec4(q.tail, 0u, 0u);
}
