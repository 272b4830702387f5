"""Device code of `triton.gemv_trits`, in Gluon: one or two rows of x on int8 matrix instructions, base-3 weights on the
left. See `device_text` for the arithmetic."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from warptile.kernels.triton.gemv_mma.codes import EVICT
from warptile.kernels.triton.gemv_mma.ends import store_sums
from warptile.kernels.triton.gemv_mma.layouts import linear, powers, warp_steps
from warptile.kernels.triton.gemv_mma.tensors import along, join4
from warptile.kernels.triton.gemv_trits.device_text import constraints, product_text, staging_text
from warptile.kernels.triton.gemv_trits.upper_text import upper_product_text, upper_staging_text
from warptile.kernels.triton.gluon_names import barrier, reinterpreted
from warptile.layouts.triton.pointwise import typed

STEP = gl.constexpr(128)


@gluon.constexpr_function
def lane_layout(W, N, U):
    """[W, N, U, 8 r, 4 c]: lane 4 r + c of every warp, U numbers each."""
    lanes = [(4, 1), (4, 2), (3, 1), (3, 2), (3, 4)]
    return linear([W, N, U, 8, 4], [(2, b) for b in powers(U)], lanes, [(1, b) for b in powers(N)] + warp_steps(W, 1))


@gluon.constexpr_function
def words_of(upper):
    """Words of x of a lane and plane."""
    return 18 if upper else 10


@gluon.constexpr_function
def factor_layout(W, N, U, columns):
    """[W, N, U, 8 / columns, columns, 4 c, 4 words] as `lane_layout`, four words a lane; few columns are repeated."""
    registers = [(6, 1), (6, 2)] + [(2, b) for b in powers(U)]
    lanes = [(5, 1), (5, 2)] + [(4, b) for b in powers(columns)] + [(3, b) for b in powers(8 // columns)]
    warps = [(1, b) for b in powers(N)] + warp_steps(W, 1)
    return linear([W, N, U, 8 // columns, columns, 4, 4], registers, lanes, warps)


@gluon.constexpr_function
def unit_layout(W, N, U):
    """[W, N, U, 8, 2 tokens, 2] as `lane_layout`: lanes c = 0, 1 take token 0's, c = 2, 3 token 1's."""
    lanes = [(5, 1), (4, 1), (3, 1), (3, 2), (3, 4)]
    warps = [(1, b) for b in powers(N)] + warp_steps(W, 1)
    return linear([W, N, U, 8, 2, 2], [(2, b) for b in powers(U)], lanes, warps)


@gluon.constexpr_function
def staging_layout(steps, warps):
    """[steps, 4 c, 16 slots]: a lane's pairs of a step in its registers, a step's four lanes beside each other."""
    own = [(0, b) for b in powers(steps)]
    threads = 3 + len(powers(warps))
    spread = (own + [(-1, 1)] * threads)[:threads]
    registers = [(2, b) for b in powers(16)] + own[threads:]
    return linear([steps, 4, 16], registers, [(1, 1), (1, 2), *spread[:3]], spread[3:])


@gluon.jit
def fetch(
    W, p0, p1, p2, first, rows0, padded, end, WARPS: gl.constexpr, N: gl.constexpr, U: gl.constexpr, FULL: gl.constexpr
):
    """Words of rows r and r + 8 of WARPS * U steps from `first` on: two of four bytes, two of two, two tails; 0 at or
    after `end`, where FULL: there is none."""
    LAY: gl.constexpr = lane_layout(WARPS, N, U)
    ahead = along(LAY, 0) * U + along(LAY, 2)
    mask = None
    other = None
    if not FULL:
        mask = gl.broadcast(ahead < end - first, along(LAY, 1) + along(LAY, 3) + along(LAY, 4) + ahead >= 0)[0]
        other = 0
    row = gl.minimum(along(LAY, 1) * 16, padded - rows0 - 16) + along(LAY, 3)
    word = ahead * padded + row
    base = first.to(gl.int64) * padded + rows0
    P0 = W + p0 + base * 4
    P0 = P0 + (word * 4 + along(LAY, 4))
    P1 = typed(W, p1, 16) + base * 4
    P1 = P1 + (word * 4 + along(LAY, 4))
    P2 = W + p2 + base
    P2 = P2 + (word + along(LAY, 4) * 0)
    a0 = gl.load(P0, mask=mask, other=other, eviction_policy=EVICT)
    a1 = gl.load(P0 + 32, mask=mask, other=other, eviction_policy=EVICT)
    b0 = gl.load(P1, mask=mask, other=other, eviction_policy=EVICT).to(gl.int32)
    b1 = gl.load(P1 + 32, mask=mask, other=other, eviction_policy=EVICT).to(gl.int32)
    t0 = gl.load(P2, mask=mask, other=other, eviction_policy=EVICT)
    t1 = gl.load(P2 + 8, mask=mask, other=other, eviction_policy=EVICT)
    return a0, a1, b0, b1, t0, t1


@gluon.jit
def halves_of(t):
    """[.., 2 n] as two [.., n], even and odd."""
    A: gl.constexpr = t.shape[0]
    B: gl.constexpr = t.shape[1]
    return gl.split(gl.reshape(t, [A, B, t.shape[2] // 2, 2]))


@gluon.jit
def only(t):
    """[A, B, 1] as [A, B]."""
    return gl.reshape(t, [t.shape[0], t.shape[1]])


@gluon.jit
def quarters_of(t):
    """[A, B, 4] as four [A, B]."""
    even, odd = halves_of(t)
    a0, a2 = halves_of(even)
    a1, a3 = halves_of(odd)
    return only(a0), only(a1), only(a2), only(a3)


@gluon.jit
def stage(
    X, memory, units, m, token0, x_stride, first, end,
    TOKENS: gl.constexpr, STEPS: gl.constexpr, WARPS_ALL: gl.constexpr, UPPER: gl.constexpr,
):  # fmt: skip
    """Fill i32[quads, STEPS, columns, 4 c, 4] with words of x (column 4 token + plane) and f32[STEPS, 2 tokens] with
    what a unit of each step counts."""
    LAY: gl.constexpr = staging_layout(STEPS, WARPS_ALL)
    WORDS: gl.constexpr = words_of(UPPER)
    BRAIN: gl.constexpr = X.dtype.element_ty == gl.bfloat16
    TEXT: gl.constexpr = upper_staging_text(BRAIN) if UPPER else staging_text(BRAIN)
    step = first + along(LAY, 0)
    for t in gl.static_range(TOKENS):
        token = gl.minimum(token0 + t, m - 1).to(gl.int64)
        P = X.to(gl.pointer_type(gl.int32)) + token * (x_stride // 2)
        at = step * (STEP // 2) + along(LAY, 1) + along(LAY, 2) * 4
        pairs = gl.load(P + at, mask=step < end, other=0)
        even, odd = halves_of(pairs)
        q0, q2 = halves_of(even)
        q1, q3 = halves_of(odd)
        s0, s4, s8, s12 = quarters_of(q0)
        s1, s5, s9, s13 = quarters_of(q1)
        s2, s6, s10, s14 = quarters_of(q2)
        s3, s7, s11, s15 = quarters_of(q3)
        found = gl.inline_asm_elementwise(
            TEXT, constraints("=r", 3 * WORDS) + ",=f," + constraints("r", 16),
            [s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15],
            dtype=(gl.int32,) * (3 * WORDS) + (gl.float32,), is_pure=True, pack=1,
        )  # fmt: skip
        for plane in gl.static_range(3):
            put(memory, 4 * t + plane, found, plane, WORDS, STEPS)
        # The same in all four lanes.
        units.slice(t, 1, 1).store(gl.reshape(gl.max(found[3 * WORDS], 1), [STEPS, 1]))


@gluon.jit
def put(memory, COLUMN: gl.constexpr, words, PLANE: gl.constexpr, WORDS: gl.constexpr, STEPS: gl.constexpr):
    """Store a column's words of every step and lane, four at a time; the last two twice."""
    for quad in gl.static_range(WORDS // 4):
        place = memory.index(quad).slice(COLUMN, 1, 1)
        store4(
            place, words[12 * quad + PLANE], words[12 * quad + 3 + PLANE], words[12 * quad + 6 + PLANE],
            words[12 * quad + 9 + PLANE], STEPS,
        )  # fmt: skip
    place = memory.index(WORDS // 4).slice(COLUMN, 1, 1)
    one = words[3 * WORDS - 6 + PLANE]
    other = words[3 * WORDS - 3 + PLANE]
    store4(place, one, other, one, other, STEPS)


@gluon.jit
def store4(memory, a, b, c, d, STEPS: gl.constexpr):
    """Four words of every step and lane to [STEPS, 1, 4, 4]."""
    memory.store(gl.reshape(join4(a, b, c, d), [STEPS, 1, 4, 4]))


@gluon.jit
def four_words(memory, W: gl.constexpr, N: gl.constexpr, U: gl.constexpr):
    """A stretch's four words of x of every lane, of memory [W, U, columns, 4, 4]: four i32[W, N, U, 8, 4]."""
    LAY: gl.constexpr = factor_layout(W, N, U, memory.shape[2])
    OUT: gl.constexpr = lane_layout(W, N, U)
    words = gl.expand_dims(memory.load(gl.SliceLayout(1, gl.SliceLayout(3, LAY))), 1)
    words, _ = gl.broadcast(gl.expand_dims(words, 3), along(LAY, 1) + along(LAY, 3))
    even, odd = gl.split(gl.reshape(words, [W, N, U, 8, 4, 2, 2]))
    a, c = gl.split(even)
    b, d = gl.split(odd)
    return (
        gl.convert_layout(a, OUT, assert_trivial=True),
        gl.convert_layout(b, OUT, assert_trivial=True),
        gl.convert_layout(c, OUT, assert_trivial=True),
        gl.convert_layout(d, OUT, assert_trivial=True),
    )


@gluon.jit
def add_stretch(
    y0, y1, y2, y3, a0, a1, b0, b1, t0, t1, power, words, units, i,
    SLOTS: gl.constexpr, W: gl.constexpr, N: gl.constexpr, U: gl.constexpr, UPPER: gl.constexpr,
):  # fmt: skip
    """The four sums of a lane with a stretch's products added."""
    LAY: gl.constexpr = unit_layout(W, N, U)
    OUT: gl.constexpr = lane_layout(W, N, U)
    x0, x1, x2, x3 = four_words(words.index(i), W, N, U)
    x4, x5, x6, x7 = four_words(words.index(i + SLOTS), W, N, U)
    x8, x9, x10, x11 = four_words(words.index(i + 2 * SLOTS), W, N, U)
    if UPPER:
        x12, x13, x14, x15 = four_words(words.index(i + 3 * SLOTS), W, N, U)
        x16, x17, _, _ = four_words(words.index(i + 4 * SLOTS), W, N, U)
    unit = units.index(i).load(gl.SliceLayout(1, gl.SliceLayout(3, gl.SliceLayout(5, LAY))))
    unit = gl.expand_dims(gl.expand_dims(gl.expand_dims(unit, 1), 3), 5)
    unit = gl.broadcast(unit, along(LAY, 1) + along(LAY, 3) + along(LAY, 5))[0]
    unit = gl.convert_layout(gl.reshape(unit, [W, N, U, 8, 4]), OUT, assert_trivial=True)
    if UPPER:
        found = gl.inline_asm_elementwise(
            upper_product_text(), constraints("=f", 4) + "," + constraints("r", 24) + ",f,r," + constraints("f", 4),
            [
                a0, a1, b0, b1, t0, t1, x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15, x16, x17,
                unit, power, y0, y1, y2, y3,
            ],
            dtype=(gl.float32, gl.float32, gl.float32, gl.float32), is_pure=True, pack=1,
        )  # fmt: skip
    else:
        found = gl.inline_asm_elementwise(
            product_text(), constraints("=f", 4) + "," + constraints("r", 16) + ",f,r," + constraints("f", 4),
            [a0, a1, b0, b1, t0, t1, x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, unit, power, y0, y1, y2, y3],
            dtype=(gl.float32, gl.float32, gl.float32, gl.float32), is_pure=True, pack=1,
        )  # fmt: skip
    return found


@gluon.jit
def of_tokens(first, second, W: gl.constexpr, N: gl.constexpr, U: gl.constexpr):
    """Sums of a row's columns 2 c and 2 c + 1, [W, N, U, 8, 4], as the sums of tokens, f32[N, 8, 2]."""
    odd = (along(lane_layout(W, N, U), 4) & 1) == 1
    planes = gl.sum(gl.where(odd, first * 65536.0, first + second * 256.0), 2)
    return gl.sum(gl.sum(gl.reshape(planes, [W, N, 8, 2, 2]), 4), 0)


@gluon.jit
def gemv_trits(
    X, W, Y, Part, Count, Executed, m, rows, k, row0, x_stride, y_stride, p0, p1, p2, p3, p4, p5, unit,
    TOKENS: gl.constexpr, WARPS: gl.constexpr, N: gl.constexpr, U: gl.constexpr, SPLIT_K: gl.constexpr,
    STRETCHES: gl.constexpr, STEPS: gl.constexpr, FULL: gl.constexpr, AHEAD: gl.constexpr, PDL: gl.constexpr,
    UPPER: gl.constexpr, BUILD_ID: gl.constexpr,
):  # fmt: skip
    """y[i, row0 + r] = sum_k x[i, k] w[r, k] for TOKENS rows of x and 16 N rows of w a program, k in SPLIT_K parts.

    WARPS * N warps split k WARPS ways and rows N ways. A stretch is WARPS * U blocks, U for each part of k; a program
    takes STRETCHES of them (FULL: k has no block too few for that), STEPS blocks or fewer, with the words of AHEAD
    stretches on their way. PDL, Part, Count and the grid are as in `triton.gemv_mma`.
    """
    ROWS: gl.constexpr = 16 * N
    STRETCH: gl.constexpr = WARPS * U
    DEPTH: gl.constexpr = AHEAD if AHEAD < STRETCHES else STRETCHES
    SLOTS: gl.constexpr = STEPS // STRETCH
    LAY: gl.constexpr = lane_layout(WARPS, N, U)
    PLAIN: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [4, 3, 2, 1, 0])
    if PDL:
        gdc_launch_dependents()
    program = gl.program_id(0)
    at_m = gl.program_id(1)
    split = program % SPLIT_K
    tile = program // SPLIT_K
    rows0 = tile * ROWS
    padded = (rows + 15) // 16 * 16
    first = split * (STRETCHES * STRETCH)
    end = gl.minimum(k // STEP, first + STRETCHES * STRETCH)
    QUADS: gl.constexpr = (words_of(UPPER) + 3) // 4
    COLUMNS: gl.constexpr = 4 * TOKENS if UPPER else 8
    memory = gl.allocate_shared_memory(
        gl.int32, [QUADS, STEPS, COLUMNS, 4, 4], gl.SwizzledSharedLayout(1, 1, 1, [3, 2, 1, 0])
    )
    units = gl.allocate_shared_memory(gl.float32, [STEPS, 2], gl.SwizzledSharedLayout(1, 1, 1, [1, 0]))
    a0, a1, b0, b1, t0, t1 = fetch(W, p0, p1, p2, first, rows0, padded, end, WARPS, N, U, FULL)
    if DEPTH >= 2:
        c0, c1, d0, d1, u0, u1 = fetch(W, p0, p1, p2, first + STRETCH, rows0, padded, end, WARPS, N, U, FULL)
    if PDL:
        gdc_wait()
    stage(X, memory, units, m, at_m * TOKENS, x_stride, first, end, TOKENS, STEPS, WARPS * N, UPPER)
    words = reinterpreted(memory, gl.int32, [QUADS * SLOTS, WARPS, U, COLUMNS, 4, 4], PLAIN)
    counts = reinterpreted(units, gl.float32, [SLOTS, WARPS, U, 2], gl.SwizzledSharedLayout(1, 1, 1, [2, 1, 0]))
    barrier()
    c = along(LAY, 4)
    power = gl.where(c == 0, 1, gl.where(c == 1, 3, gl.where(c == 2, 9, 27)))
    power, y0 = gl.broadcast(power, gl.full((WARPS, N, U, 8, 4), 0, gl.float32, LAY))
    y1 = y0
    y2 = y0
    y3 = y0
    for i in range(0, STRETCHES, DEPTH):
        following = first + (i + DEPTH) * STRETCH
        y0, y1, y2, y3 = add_stretch(
            y0, y1, y2, y3, a0, a1, b0, b1, t0, t1, power, words, counts, i, SLOTS, WARPS, N, U, UPPER
        )
        if i + DEPTH < STRETCHES:
            a0, a1, b0, b1, t0, t1 = fetch(W, p0, p1, p2, following, rows0, padded, end, WARPS, N, U, FULL)
        if DEPTH >= 2:
            # One condition is the compiler's, the other the device's.
            if i + 1 < STRETCHES:
                y0, y1, y2, y3 = add_stretch(
                    y0, y1, y2, y3, c0, c1, d0, d1, u0, u1, power, words, counts, i + 1, SLOTS, WARPS, N, U, UPPER
                )
                if i + 1 + DEPTH < STRETCHES:
                    c0, c1, d0, d1, u0, u1 = fetch(
                        W, p0, p1, p2, following + STRETCH, rows0, padded, end, WARPS, N, U, FULL
                    )
    OUT: gl.constexpr = gl.BlockedLayout([1, 1], [16, 2], [WARPS * N, 1], [1, 0])
    total = gl.join(of_tokens(y0, y1, WARPS, N, U), of_tokens(y2, y3, WARPS, N, U))
    total = gl.convert_layout(gl.reshape(gl.permute(total, (0, 3, 1, 2)), [ROWS, 2]), OUT)
    row = rows0 + gl.expand_dims(gl.arange(0, ROWS, layout=gl.SliceLayout(1, OUT)), 1)
    column = gl.expand_dims(gl.arange(0, 2, layout=gl.SliceLayout(0, OUT)), 0)
    token = at_m * TOKENS + column
    y = Y + token.to(gl.int64) * y_stride + (row0 + row)
    inside = (column < TOKENS) & (token < m) & (row < rows)
    at = at_m * (gl.num_programs(0) // SPLIT_K) + tile
    store_sums(total, y, inside, None, Part, Count, at, split, (row - rows0) * 2 + column, ROWS * 2, SPLIT_K)
    if (program == 0) & (at_m == 0):
        gl.store(Executed, gl.full([], BUILD_ID, gl.uint32))
