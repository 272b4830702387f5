// y[m, row0 + n] = the sum over parts, in order, of part[p][m][n]; each invocation VECTOR neighbours along n.
layout(local_size_x = 256) in;
layout(std430, set = 0, binding = 1) readonly buffer PartBuffer { PART_VECTOR part[]; };
layout(std430, set = 0, binding = 2) writeonly buffer YVectorBuffer { Y_VECTOR YVectors[]; };

void main() {
    mark_executed();
    const uint at = gl_GlobalInvocationID.x;
    const uint width = P.rows / VECTOR, all = P.m * width;
    if (at >= all) return;
    // All loads are on their way before the first is added.
    PART_VECTOR parts[PARTS];
    [[unroll]] for (uint p = 0u; p < PARTS; ++p) parts[p] = part[p * all + at];
    PART_VECTOR sum = parts[0];
    [[unroll]] for (uint p = 1u; p < PARTS; ++p) sum += parts[p];
    YVectors[(at / width * P.y_stride + P.row0) / VECTOR + at % width] = Y_VECTOR(sum);
}
