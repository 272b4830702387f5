"""The tile llama.cpp's Vulkan back end picks for its integer-dot matmul from its static table, as data.

Source: as `mul_mm.stock`; its tables `warptile_mmq_int` and, for K-quants, `warptile_mmq_int_k`, and BK_STEP 4.
llama.cpp takes this shader where the device accelerates four-byte dot products.
"""

from __future__ import annotations

from collections.abc import Iterable

from warptile.contracts import Limits, Problem
from warptile.kernels.price_model import MMQ_WEIGHT_BYTES
from warptile.kernels.vulkan.mul_mm.stock import llama_cpp_size, nearest
from warptile.kernels.vulkan.mul_mmq.rules import broken_rules
from warptile.kernels.vulkan.mul_mmq.staging import shared_bytes
from warptile.kernels.vulkan.mul_mmq.tile import MulMmqTile

BK_STEP = 4
# Formats whose codes llama.cpp keeps packed in shared memory.
PACKED = ("Q2_K", "Q3_K", "Q4_0", "Q4_1", "Q4_K", "Q5_0", "Q5_1")


def llama_cpp_tiles(format_name: str, limits: Limits) -> dict[str, MulMmqTile]:
    """llama.cpp's tile of each size for a format at this device's subgroup, valid or not."""
    subgroup = limits.subgroup
    warp = min(max(subgroup, 8), 64)
    iterations = 1 if format_name.endswith("_K") else 2
    staged = "packed" if format_name in PACKED else "int8"
    own = (BK_STEP, "int_dot", staged)
    return {
        "small": MulMmqTile(
            max(subgroup, 32), 32, 32, 32, 8 if subgroup == 8 else 32, 32, iterations, 2, 1, 1, max(subgroup, 8), *own
        ),
        "medium": MulMmqTile(128, 64, 64, 32, warp, 32, iterations, 2, 2, 1, warp, *own),
        "large": MulMmqTile(128, 128, 128, 32, 2 * warp, 64, iterations, 4, 4, 1, warp, *own),
    }


def stock(problem: Problem, limits: Limits, space: Iterable[MulMmqTile]) -> MulMmqTile | None:
    """llama.cpp's tile, or the nearest valid one; None where llama.cpp would not take this shader."""
    if not limits.has("int_dot_accelerated") or problem.format not in MMQ_WEIGHT_BYTES:
        return None
    tiles = llama_cpp_tiles(problem.format, limits)
    taken = {size: shared_bytes(tile, problem.format) for size, tile in tiles.items()}
    wanted = tiles[llama_cpp_size(problem, limits, taken)]
    return nearest(wanted, limits, space, lambda tile: not broken_rules(tile, problem, limits))
