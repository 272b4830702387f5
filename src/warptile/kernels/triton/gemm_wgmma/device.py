"""Device code of `triton.gemm_wgmma`: Gluon, for Hopper's asynchronous copies and warp-group matrix instructions."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import hopper
from triton.experimental.gluon.language.nvidia.hopper import mbarrier
from triton.language.extra.cuda import gdc_launch_dependents

from warptile.kernels.triton.gemm_wgmma.device_consume import consume
from warptile.kernels.triton.gemm_wgmma.device_copies import produce
from warptile.kernels.triton.gemm_wgmma.device_rings import produce_tokens, produce_weights
from warptile.kernels.triton.gluon_roles import arguments
from warptile.layouts.triton.lane_layouts import element, held_layout, held_shape


@gluon.jit
def gemm_wgmma(
    X, D0, D1, D2, D3, D4, Out, W, Y, Part, Count, Executed, m, rows, k, programs, split, rest, sharers, row0,
    y_stride, unit,
    L: gl.constexpr, PLANES: gl.constexpr, CONSUMERS: gl.constexpr, TILE_N: gl.constexpr, TILE_M: gl.constexpr,
    STEP: gl.constexpr, STAGES: gl.constexpr, WHOLE: gl.constexpr, EVEN: gl.constexpr, GROUP_M: gl.constexpr,
    BF16: gl.constexpr, ADDED: gl.constexpr, EARLY: gl.constexpr, PAIRS: gl.constexpr, TURN: gl.constexpr,
    AHEAD: gl.constexpr, HOLD: gl.constexpr, FREE: gl.constexpr, RING: gl.constexpr, COPIED: gl.constexpr,
    DIRECT: gl.constexpr, CONSUMER_REGISTERS: gl.constexpr, PRODUCER_REGISTERS: gl.constexpr, BUILD_ID: gl.constexpr,
):  # fmt: skip
    """y[i, row0 + r] = sum_k x[i, k] w[r, k] for one slice of weights; fp32 sums over k in order, then over the
    programs that share a tile in theirs.

    X: x[m, k] by boxes of [TILE_M, 64]; D0..: the planes by boxes. Grid: tiles * split; with WHOLE (split 1) fewer
    programs take several tiles each; with EVEN (split 0) the first `sharers` share the steps of the first `rest` tiles
    evenly, and all take the others whole, of which each has as many.
    Part: fp32[2 * sharers * TILE_N * TILE_M]; Count: i32[tiles * CONSUMERS], zero before and after.
    EARLY: the next launch may start while this one ends. RING: places of activations, 0 for those of STAGES. COPIED:
    y goes through shared memory and Out, its boxes of [TILE_M, 64].
    """
    if EARLY:
        gdc_launch_dependents()
    PARTS: gl.constexpr = STEP // 64
    XTYPE: gl.constexpr = gl.bfloat16 if BF16 else gl.float16
    PLACES: gl.constexpr = RING if RING > 0 else STAGES * PARTS
    steps = k // STEP
    tokens = gl.allocate_shared_memory(XTYPE, [PLACES, TILE_M, 64], gl.NVMMASharedLayout(128, 16, 2))
    h0 = gl.allocate_shared_memory(element(PLANES[0]), [STAGES] + held_shape(PLANES[0], TILE_N), held_layout(PLANES[0]))
    if len(PLANES) == 1:
        sources, held = (D0,), (h0,)
    else:
        h1 = gl.allocate_shared_memory(
            element(PLANES[1]), [STAGES] + held_shape(PLANES[1], TILE_N), held_layout(PLANES[1])
        )
        if len(PLANES) == 2:
            sources, held = (D0, D1), (h0, h1)
        else:
            h2 = gl.allocate_shared_memory(
                element(PLANES[2]), [STAGES] + held_shape(PLANES[2], TILE_N), held_layout(PLANES[2])
            )
            if len(PLANES) == 3:
                sources, held = (D0, D1, D2), (h0, h1, h2)
            else:
                h3 = gl.allocate_shared_memory(
                    element(PLANES[3]), [STAGES] + held_shape(PLANES[3], TILE_N), held_layout(PLANES[3])
                )
                if len(PLANES) == 4:
                    sources, held = (D0, D1, D2, D3), (h0, h1, h2, h3)
                else:
                    h4 = gl.allocate_shared_memory(
                        element(PLANES[4]), [STAGES] + held_shape(PLANES[4], TILE_N), held_layout(PLANES[4])
                    )
                    sources, held = (D0, D1, D2, D3, D4), (h0, h1, h2, h3, h4)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), 1)
        mbarrier.init(empty.index(i), CONSUMERS * (4 if FREE else 1))
    if RING > 0:
        ring_full = gl.allocate_shared_memory(gl.int64, [RING, 1], mbarrier.MBarrierLayout())
        ring_empty = gl.allocate_shared_memory(gl.int64, [RING, 1], mbarrier.MBarrierLayout())
        for i in gl.static_range(RING):
            mbarrier.init(ring_full.index(i), 1)
            mbarrier.init(ring_empty.index(i), CONSUMERS * (4 if FREE else 1))
    else:
        ring_full = full
        ring_empty = empty
    if COPIED:
        both = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
        mbarrier.init(both, CONSUMERS * (4 if FREE else 1))
    else:
        both = full
    hopper.fence_async_shared()
    places = (tokens, held, full, empty, ring_full, ring_empty, both)
    work = (m, rows, steps, programs, split, rest, sharers)
    sums = arguments((Out, W, Y, Part, Count, Executed), work, (row0, y_stride, unit))
    WALK: gl.constexpr = (TILE_N, TILE_M, STEP, TURN, WHOLE, EVEN, GROUP_M)
    CHOICES: gl.constexpr = (
        L, PLANES, STAGES, BF16, ADDED, EARLY, PAIRS, AHEAD, HOLD, FREE, RING, COPIED, CONSUMERS, DIRECT, BUILD_ID,
    )  # fmt: skip
    if RING > 0:
        gl.static_assert(CONSUMERS == 2)
        gl.warp_specialize(
            [
                (consume, arguments(places, sums, WALK, CHOICES, (0,))),
                (consume, arguments(places, sums, WALK, CHOICES, (1,))),
                (produce_weights, arguments((sources, held, full, empty), work, WALK, (PLANES, STAGES))),
                (produce_tokens, arguments((X, tokens, ring_full, ring_empty), work, WALK, (RING, EARLY))),
            ],
            [4, 1, 1], [CONSUMER_REGISTERS, PRODUCER_REGISTERS, PRODUCER_REGISTERS],
        )  # fmt: skip
    else:
        copies = (X, sources, tokens, held, full, empty)
        if CONSUMERS == 1:
            gl.warp_specialize(
                [
                    (consume, arguments(places, sums, WALK, CHOICES, (0,))),
                    (produce, arguments(copies, work, WALK, (PLANES, STAGES, EARLY))),
                ],
                [1], [PRODUCER_REGISTERS],
            )  # fmt: skip
        elif CONSUMERS == 2:
            gl.warp_specialize(
                [
                    (consume, arguments(places, sums, WALK, CHOICES, (0,))),
                    (consume, arguments(places, sums, WALK, CHOICES, (1,))),
                    (produce, arguments(copies, work, WALK, (PLANES, STAGES, EARLY))),
                ],
                [4, 1], [CONSUMER_REGISTERS, PRODUCER_REGISTERS],
            )  # fmt: skip
        else:
            gl.static_assert(CONSUMERS == 4)
            gl.warp_specialize(
                [
                    (consume, arguments(places, sums, WALK, CHOICES, (0,))),
                    (consume, arguments(places, sums, WALK, CHOICES, (1,))),
                    (consume, arguments(places, sums, WALK, CHOICES, (2,))),
                    (consume, arguments(places, sums, WALK, CHOICES, (3,))),
                    (produce, arguments(copies, work, WALK, (PLANES, STAGES, EARLY))),
                ],
                [4, 4, 4, 1], [CONSUMER_REGISTERS, CONSUMER_REGISTERS, CONSUMER_REGISTERS, PRODUCER_REGISTERS],
            )  # fmt: skip
