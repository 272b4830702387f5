"""`triton.gemm_wgmma`: weights decoded in registers into Hopper's warp-group matrix instructions."""

from __future__ import annotations

from collections.abc import Iterator

from warptile.contracts import (
    Arithmetic,
    Binary,
    BrokenRule,
    Buffer,
    DeviceWeights,
    Launch,
    Limits,
    Price,
    Problem,
    Source,
    Tile,
)
from warptile.kernels.triton import common
from warptile.kernels.triton.gemm_wgmma import price as pricing
from warptile.kernels.triton.gemm_wgmma import rules
from warptile.kernels.triton.gemm_wgmma import space as tiles
from warptile.kernels.triton.gemm_wgmma.planes import box, lane_planes
from warptile.kernels.triton.gemm_wgmma.tile import WgmmaTile
from warptile.kernels.triton.program import Box, Build, Program

DEVICE = "warptile.kernels.triton.gemm_wgmma.device:gemm_wgmma"
ENQUEUE = "warptile.kernels.triton.gemm_wgmma.enqueue:enqueue"
MOST_PLANES = 5
# What a lane of twelve warps is launched with, and the bounds of what a warp group may ask for instead.
LAUNCH_REGISTERS, LEAST_REGISTERS, MOST_REGISTERS = 168, 24, 232


def registers(tile: WgmmaTile, operand: str) -> tuple[int, int]:
    """Registers of a lane of the consuming and of the copying warps; the first consuming group has what is left.

    A lean tile's consumers have what their sums and decode take, more where parts are summed or bf16 is made; the
    copying warps hold the rest.
    """
    if tile.consumers == 4:
        return 112, LEAST_REGISTERS
    if not tile.lean:
        return 240, LEAST_REGISTERS
    sharing = (32 if tile.added else 16) if tile.split_k != 1 else 0
    consuming = (136 if rules.sums_of(tile) <= 64 else 184) + sharing + 16 * (operand == "bf16")
    return consuming, min(MOST_REGISTERS, 3 * LAUNCH_REGISTERS - 2 * consuming)


class GemmWgmma:
    """y[m, n] = sum_k x[m, k] * w[n, k]; fp32 sums over k in order, parts of k added in their own order."""

    name = "triton.gemm_wgmma"
    runtime = "triton"
    tile_type: type[Tile] = WgmmaTile

    def space(self, problem: Problem, limits: Limits) -> Iterator[Tile]:
        return iter(tiles.space(problem, limits))

    def stock(self, problem: Problem, limits: Limits) -> Tile | None:
        return tiles.stock(problem, limits)

    def broken_rules(self, tile: Tile, problem: Problem, limits: Limits) -> list[BrokenRule]:
        return rules.broken_rules(own(tile), problem, limits)

    def price(self, tile: Tile, problem: Problem, limits: Limits) -> Price:
        return pricing.price(own(tile), problem, limits)

    def source(self, tile: Tile, problem: Problem, limits: Limits) -> Source:
        """Depends on k through the arrangement alone."""
        t = own(tile)
        planes = lane_planes(common.arranged(problem))
        boxes = [Box("X", problem.x_dtype, (t.tile_m, rules.PART), 128)]
        boxes += [Box(f"D{i}", *box(plane, t.tile_n)) for i, plane in enumerate(planes)]
        if t.copied:
            boxes.append(Box("Out", problem.y_dtype, (t.tile_m, t.rows), 128))
        consumer, producer = registers(t, problem.x_dtype)
        build = Build(
            function=DEVICE,
            pointers=(
                ("W", "*i32"),
                ("Y", common.pointer(problem.y_dtype)),
                ("Part", "*fp32"),
                ("Count", "*i32"),
                ("Executed", "*u32"),
            ),
            constants=(
                *((f"D{i}", None) for i in range(len(planes), MOST_PLANES)),
                *(() if t.copied else (("Out", None),)),
                ("L", (*common.parameters(problem), t.joined)),
                ("PLANES", planes),
                ("CONSUMERS", t.consumers),
                ("TILE_N", t.tile_n),
                ("TILE_M", t.tile_m),
                ("STEP", t.tile_k),
                ("STAGES", t.stages),
                ("WHOLE", t.split_k == 1),
                ("EVEN", t.split_k == 0),
                ("GROUP_M", t.group_m),
                ("BF16", problem.x_dtype == "bf16"),
                ("ADDED", t.added or t.tile_m),
                ("EARLY", bool(t.early)),
                ("PAIRS", bool(t.pairs)),
                ("TURN", t.turn),
                ("AHEAD", rules.sums_of(t) < rules.MOST_SUMS[2]),
                ("HOLD", bool(t.hold)),
                ("FREE", bool(t.free)),
                ("RING", t.ring),
                ("COPIED", bool(t.copied)),
                ("DIRECT", bool(t.direct)),
                ("CONSUMER_REGISTERS", consumer),
                ("PRODUCER_REGISTERS", producer),
            ),
            aligned=("W", "Part", "k"),
            warps=4,
            stages=1,
            language="gluon",
            boxes=tuple(boxes),
            early=bool(t.early),
            marked=bool(t.free),
        )
        program = Program(ENQUEUE, (build,))
        return program.source(3, common.SCALARS + 7, 128 * (t.consumers + 1), limits.subgroup)

    def launch(
        self, binary: Binary, tile: Tile, problem: Problem, x: Buffer, w: DeviceWeights, y: Buffer
    ) -> tuple[Launch, ...]:
        t = own(tile)
        planes = len(lane_planes(common.arranged(problem)))
        pieces = [(piece, rules.shares_of(t, problem.m, piece.rows, problem.k)) for piece in w.slices]
        return tuple(
            Launch(
                binary=binary,
                buffers=(x, piece.buffer, y),
                scalars=(
                    *common.scalars(problem, piece, problem.k, problem.n),
                    t.split_k,
                    shares.rest,
                    shares.sharers,
                    planes,
                    t.copied,
                    t.tile_n * t.tile_m,
                    rules.tiles_of(t, problem.m, piece.rows) * t.consumers,
                ),
                grid=(shares.programs, 1, 1),
            )
            for piece, shares in pieces
        )

    def boundaries(self, tile: Tile) -> tuple[int, int, int]:
        t = own(tile)
        return t.tile_m, t.tile_n, t.tile_k * max(1, t.split_k)

    def arithmetic(self, tile: Tile, problem: Problem) -> Arithmetic:
        """A term joins at most all terms of its program's part of a tile, in any order, then the other parts: no more
        than the tile has steps."""
        t = own(tile)
        operand = problem.x_dtype
        most = problem.k // t.tile_k
        parts = t.split_k if t.split_k else min(most, t.programs)
        made = "bf16 factors from fp16 unit" if t.direct else f"{operand} from fp16 unit"
        return Arithmetic(made, operand, "fp32", problem.k, parts * t.sums)


def own(tile: Tile) -> WgmmaTile:
    """`tile` as this kernel's. Raises TypeError for another's."""
    if not isinstance(tile, WgmmaTile):
        raise TypeError(f"{GemmWgmma.name} takes a WgmmaTile, not {type(tile).__name__}")
    return tile


KERNEL = GemmWgmma()
