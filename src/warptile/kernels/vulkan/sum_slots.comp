#version 450
// y[t, r] = sum over j, in order, of weight[t, j] * slots[t, j, r]; an id that names no expert adds 0.

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 0) const uint THREADS = 64u;
layout(constant_id = 100) const uint BUILD_ID = 0u;
layout(push_constant) uniform Scalars { uint slot; uint tokens; uint n; uint top_k; uint experts; } P;
layout(std430, set = 0, binding = 0) readonly buffer SlotsBuffer { float Slots[]; };
layout(std430, set = 0, binding = 1) readonly buffer IdsBuffer { int Ids[]; };
layout(std430, set = 0, binding = 2) readonly buffer WeightsBuffer { float Weights[]; };
layout(std430, set = 0, binding = 3) writeonly buffer YBuffer { float Y[]; };
layout(std430, set = 0, binding = 4) writeonly buffer ExecutedBuffer { uint executed[]; };

void main() {
    if (gl_WorkGroupID == uvec3(0) && gl_LocalInvocationIndex == 0u) executed[P.slot] = BUILD_ID;
    const uint element = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * THREADS + gl_LocalInvocationIndex;
    if (element >= P.tokens * P.n) return;
    const uint token = element / P.n;
    const uint row = element % P.n;
    float sum = 0.0;
    for (uint j = 0u; j < P.top_k; ++j) {
        const uint s = token * P.top_k + j;
        const int id = Ids[s];
        if (id >= 0 && uint(id) < P.experts) sum += Weights[s] * Slots[s * P.n + row];
    }
    Y[element] = sum;
}
