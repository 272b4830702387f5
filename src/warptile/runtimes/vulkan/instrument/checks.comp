// What a checked build calls at every access and barrier. Linked into a kernel's module; `main` only keeps it all alive.
//
// D begins with this launch's header (see report.py). A shadow cell stands for one scalar of shared memory and holds stamped
// ids: epoch in the high bits, then the number of subgroup barriers since, then an invocation. Stamps only grow, so that
// atomicMax keeps the newest; of the readers (and atomic users) of an epoch the highest and the lowest are kept, which tells
// whether there was any other. Of the values written, a few bits of a hash likewise: writes of one value are no race.
layout(local_size_x = 1) in;
layout(std430, set = 0, binding = DEBUG_BINDING) buffer WarptileDebug { uint D[]; };

#define REPORTS 0u
#define CAPACITY 1u
#define SHADOW 2u
#define STARTED 3u
#define FINISHED 4u
#define RAN 5u
#define INVOCATIONS 6u
#define SLOT 7u
#define EXTENTS 16u
#define ONCE 32u
#define ONCE_SHIFT 48u
#define CUT 63u

#define OUTSIDE 1u
#define RACE_WRITE_READ 2u
#define RACE_READ_WRITE 3u
#define RACE_WRITES 4u
#define UNINITIALISED 5u
#define TWICE 6u
#define OUTSIDE_INNER 7u
#define DIVERGED 8u

#define WRITTEN 0u
#define READ_HIGH 1u
#define READ_LOW 2u
#define VALUE_HIGH 3u
#define VALUE_LOW 4u
#define WRITE_SITE 5u
#define READ_SITE 6u
#define SUBGROUP_HIGH 7u
#define SUBGROUP_LOW 8u
#define ATOMIC_HIGH 9u
#define ATOMIC_LOW 10u
#define ATOMIC_SITE 11u

#define ID_BITS 10u
#define ID_MASK 1023u
#if SUBGROUPS
#define EPOCH_SHIFT 20u
#define LAST_EPOCH 4095u
#define LANE gl_SubgroupInvocationID
#define LANES gl_SubgroupSize
#else
#define EPOCH_SHIFT 10u
#define LAST_EPOCH 4194303u
#define LANE 0u
#define LANES 1u
#endif

uint stamp, me, workgroup, ends, shadow, found_kind, found_site, found_index, found_other, found_other_site;

void note(const bool wrong, const uint kind, const uint site, const uint index, const uint other, const uint other_site) {
    const bool first = wrong && found_kind == 0u;
    found_kind = first ? kind : found_kind;
    found_site = first ? site : found_site;
    found_index = first ? index : found_index;
    found_other = first ? other : found_other;
    found_other_site = first ? other_site : found_other_site;
}

void enter(const uint id, const uint words) {
    stamp = 1u << EPOCH_SHIFT;
    found_kind = 0u;
    found_site = 0u;
    found_index = 0u;
    found_other = 0u;
    found_other_site = 0u;
#if SUBGROUPS
    me = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
#else
    me = gl_LocalInvocationIndex;
#endif
    workgroup = gl_WorkGroupID.x + gl_NumWorkGroups.x * (gl_WorkGroupID.y + gl_NumWorkGroups.y * gl_WorkGroupID.z);
    ends = D[SHADOW] + workgroup * words;
    shadow = ends + 2u;
    if (gl_LocalInvocationIndex == 0u) {
        atomicAdd(D[STARTED], 1u);
        atomicExchange(D[RAN], id);
    }
}

void leave() {
    // A software device ends every loop once an invocation has gone round many times in all: this one tells.
    uint turns = 0u;
    for (const uint wanted = min(D[CAPACITY], 4u); turns < wanted; ++turns) atomicOr(D[CUT], 0u);
    if (turns < min(D[CAPACITY], 4u)) atomicAdd(D[CUT], 1u);
    // The last of a workgroup to come here sees whether all have passed as many barriers.
    const uint passed = stamp >> EPOCH_SHIFT;
    atomicMax(D[ends], passed);
    atomicMax(D[ends + 1u], ~passed);
    const uint most = atomicOr(D[ends], 0u), least = ~atomicOr(D[ends + 1u], 0u);
    note(most != passed || least != passed, DIVERGED, 0u, passed - 1u, (most != passed ? most : least) - 1u, 0u);
    atomicAdd(D[INVOCATIONS], 1u);
    if (gl_LocalInvocationIndex == 0u) atomicAdd(D[FINISHED], 1u);
    if (found_kind != 0u) {
        const uint at = atomicAdd(D[D[REPORTS]], 1u);
        if (at < D[CAPACITY]) {
            const uint to = D[REPORTS] + 8u + at * 8u;
            D[to] = found_kind;
            D[to + 1u] = found_site;
            D[to + 2u] = workgroup;
            D[to + 3u] = me;
            D[to + 4u] = found_index;
            D[to + 5u] = found_other;
            D[to + 6u] = found_other_site;
            D[to + 7u] = D[SLOT];
        }
    }
}

void passed_workgroup_barrier() {
    stamp = (min(stamp >> EPOCH_SHIFT, LAST_EPOCH - 1u) + 1u) << EPOCH_SHIFT;
}

#if SUBGROUPS
void passed_subgroup_barrier() {
    stamp = (stamp >> EPOCH_SHIFT << EPOCH_SHIFT) | min((stamp & ((1u << EPOCH_SHIFT) - 1u)) + (1u << ID_BITS), 1023u << ID_BITS);
}
#endif

// Whether a stamped id is another invocation's, of this epoch, with no barrier of both between.
bool clashes(const uint record) {
    const bool now = record >> EPOCH_SHIFT == stamp >> EPOCH_SHIFT && stamp >> EPOCH_SHIFT != LAST_EPOCH;
    const uint other = record & ID_MASK;
#if SUBGROUPS
    const bool counted = (stamp >> ID_BITS & 1023u) != 1023u;
    const bool apart = other / LANES != me / LANES || (counted && record >> ID_BITS == stamp >> ID_BITS);
    return now && apart && other != me;
#else
    return now && other != me;
#endif
}

// The same of a subgroup's number.
bool subgroup_clashes(const uint record) {
    return record >> EPOCH_SHIFT == stamp >> EPOCH_SHIFT && stamp >> EPOCH_SHIFT != LAST_EPOCH && (record & ID_MASK) != me / LANES;
}

uint flipped(const uint record) { return record ^ ID_MASK; }

void shared_read(const uint cell, const uint site) {
    const uint at = shadow + cell * CELL;
    atomicMax(D[at + READ_HIGH], stamp | me);
    atomicMax(D[at + READ_LOW], flipped(stamp | me));
#if SUBGROUPS
    const uint epoch = stamp >> EPOCH_SHIFT << EPOCH_SHIFT;
    atomicMax(D[at + SUBGROUP_HIGH], epoch | (me / LANES));
    atomicMax(D[at + SUBGROUP_LOW], flipped(epoch | (me / LANES)));
#endif
    D[at + READ_SITE] = site;
    const uint written = atomicOr(D[at + WRITTEN], 0u);
    note(clashes(written), RACE_WRITE_READ, site, cell, written & ID_MASK, D[at + WRITE_SITE]);
#if ATOMICS
    const uint high = atomicOr(D[at + ATOMIC_HIGH], 0u), low = flipped(atomicOr(D[at + ATOMIC_LOW], 0u));
    note(clashes(high), RACE_WRITE_READ, site, cell, high & ID_MASK, D[at + ATOMIC_SITE]);
    note(clashes(low), RACE_WRITE_READ, site, cell, low & ID_MASK, D[at + ATOMIC_SITE]);
    note(written == 0u && high == 0u, UNINITIALISED, site, cell, 0u, 0u);
#else
    note(written == 0u, UNINITIALISED, site, cell, 0u, 0u);
#endif
}

void read_clashes(const uint at, const uint cell, const uint site) {
    const uint high = atomicOr(D[at + READ_HIGH], 0u), low = flipped(atomicOr(D[at + READ_LOW], 0u));
    note(clashes(high), RACE_READ_WRITE, site, cell, high & ID_MASK, D[at + READ_SITE]);
    note(clashes(low), RACE_READ_WRITE, site, cell, low & ID_MASK, D[at + READ_SITE]);
#if SUBGROUPS
    const uint most = atomicOr(D[at + SUBGROUP_HIGH], 0u), least = flipped(atomicOr(D[at + SUBGROUP_LOW], 0u));
    note(subgroup_clashes(most), RACE_READ_WRITE, site, cell, (most & ID_MASK) * LANES, D[at + READ_SITE]);
    note(subgroup_clashes(least), RACE_READ_WRITE, site, cell, (least & ID_MASK) * LANES, D[at + READ_SITE]);
#endif
}

void shared_write(const uint cell, const uint bits, const uint site) {
    const uint at = shadow + cell * CELL;
    const uint hash = (bits * 2654435761u) >> 22;
    atomicMax(D[at + VALUE_HIGH], (stamp | hash));
    atomicMax(D[at + VALUE_LOW], flipped(stamp | hash));
    const uint written = atomicExchange(D[at + WRITTEN], stamp | me);
    const uint most = atomicOr(D[at + VALUE_HIGH], 0u), least = flipped(atomicOr(D[at + VALUE_LOW], 0u));
    const bool one_value = written >> ID_BITS == stamp >> ID_BITS && most == least;
    note(clashes(written) && !one_value, RACE_WRITES, site, cell, written & ID_MASK, D[at + WRITE_SITE]);
    D[at + WRITE_SITE] = site;
    read_clashes(at, cell, site);
#if ATOMICS
    const uint high = atomicOr(D[at + ATOMIC_HIGH], 0u), low = flipped(atomicOr(D[at + ATOMIC_LOW], 0u));
    note(clashes(high), RACE_WRITES, site, cell, high & ID_MASK, D[at + ATOMIC_SITE]);
    note(clashes(low), RACE_WRITES, site, cell, low & ID_MASK, D[at + ATOMIC_SITE]);
#endif
}

#if ATOMICS
// reads: an atomic operation that returns what it found, not a store.
void shared_atomic(const uint cell, const uint reads, const uint site) {
    const uint at = shadow + cell * CELL;
    const uint before = atomicMax(D[at + ATOMIC_HIGH], stamp | me);
    atomicMax(D[at + ATOMIC_LOW], flipped(stamp | me));
    D[at + ATOMIC_SITE] = site;
    const uint written = atomicOr(D[at + WRITTEN], 0u);
    note(clashes(written), RACE_WRITES, site, cell, written & ID_MASK, D[at + WRITE_SITE]);
    note(reads != 0u && written == 0u && before == 0u, UNINITIALISED, site, cell, 0u, 0u);
    read_clashes(at, cell, site);
}
#endif

void shared_reads(const uint cell, const uint count, const uint site) {
    for (uint i = 0u; i < count; ++i) shared_read(cell + i, site);
}

// Lines of a matrix, shared out among the subgroup's lanes: the operation is the subgroup's.
void shared_reads_lines(const uint cell, const uint lines, const uint stride, const uint count, const uint site) {
    for (uint line = LANE; line < lines; line += LANES)
        for (uint i = 0u; i < count; ++i) shared_read(cell + line * stride + i, site);
}

void shared_writes_lines(const uint cell, const uint lines, const uint stride, const uint count, const uint site) {
    for (uint line = LANE; line < lines; line += LANES)
        for (uint i = 0u; i < count; ++i) shared_write(cell + line * stride + i, me + 1u, site);
}

bool shared_inside(const bool inside, const uint index, const uint length, const uint site) {
    note(!inside, OUTSIDE_INNER, site, index, length, 0u);
    return inside;
}

// Element `index` of an array of elements `stride` bytes apart, of which bytes up to `end` (from the first element's start)
// are touched; `inner`: whether all further indices are inside what they index, else one that is not, and its limit.
bool buffer_inside(
    const uint binding, const uint index, const uint stride, const uint end, const bool inner, const uint bad_index,
    const uint length, const uint site
) {
    const uint extent = D[EXTENTS + binding];
    const bool inside = end <= extent && index <= (extent - end) / stride;
    note(!inner, OUTSIDE_INNER, site, bad_index, length, 0u);
    note(!inside, OUTSIDE, site, index, extent, 0u);
    return inner && inside;
}

// The same of a read by a kernel that counts on the driver for what is beyond the buffer.
bool buffer_within(
    const uint binding, const uint index, const uint stride, const uint end, const bool inner, const uint bad_index,
    const uint length, const uint site
) {
    const uint extent = D[EXTENTS + binding];
    note(!inner, OUTSIDE_INNER, site, bad_index, length, 0u);
    return inner && end <= extent && index <= (extent - end) / stride;
}

// Bytes start .. start + size of element `index`, counted as written by this invocation of this launch.
void buffer_written(const uint binding, const uint index, const uint stride, const uint start, const uint size, const uint site) {
    const uint counts = D[ONCE + binding];
    if (counts != 0u) {
        const uint by = ((D[SLOT] + 1u) << 28) | ((workgroup << ID_BITS | me) + 1u) & 0x0fffffffu;
        const uint shift = D[ONCE_SHIFT + binding], first = (index * stride + start) >> shift;
        uint i = 0u;
        do {
            const uint before = atomicExchange(D[counts + first + i], by);
            note(before != 0u, TWICE, site, first + i, before, 0u);
            ++i;
        } while (i < size >> shift);
    }
}

void buffer_written_lines(
    const uint binding, const uint index, const uint stride, const uint start, const uint lines, const uint line_stride,
    const uint size, const uint site
) {
    for (uint line = LANE; line < lines; line += LANES)
        buffer_written(binding, index + line * line_stride, stride, start, size, site);
}

void main() {
    enter(0u, 0u);
    passed_workgroup_barrier();
#if SUBGROUPS
    passed_subgroup_barrier();
#endif
    shared_reads(0u, 0u, 0u);
    shared_write(0u, 0u, 0u);
#if ATOMICS
    shared_atomic(0u, 0u, 0u);
#endif
    shared_reads_lines(0u, 0u, 0u, 0u, 0u);
    shared_writes_lines(0u, 0u, 0u, 0u, 0u);
    if (shared_inside(true, 0u, 0u, 0u) && buffer_within(0u, 0u, 1u, 0u, true, 0u, 0u, 0u) && buffer_inside(0u, 0u, 1u, 0u, true, 0u, 0u, 0u)) buffer_written_lines(0u, 0u, 0u, 0u, 0u, 0u, 0u, 0u);
    leave();
}
