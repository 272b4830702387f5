"""The tile llama.cpp's Vulkan back end picks from its static table, as data.

Source: ggml/src/ggml-vulkan/ggml-vulkan.cpp of llama.cpp, as llama-cpp-python 0.3.36 carries it: the small, medium
and large tiles of a quantized weight for devices without cooperative matrices (`ggml_vk_load_shaders`), which of them
a vendor may use (`ggml_vk_get_device`), which one a matmul takes (`matmul_tile_selector`). Software devices
count as any other vendor.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from math import log2
from types import MappingProxyType
from typing import TypeVar

from warptile.contracts import Limits, Problem
from warptile.kernels.price_model import mul_mm_shared_bytes
from warptile.kernels.vulkan.mul_mm.rules import broken_rules
from warptile.kernels.vulkan.mul_mm.tile import MulMmTile
from warptile.kernels.vulkan.warp_tile import WarpTile

T = TypeVar("T", bound=WarpTile)

SIZES = ("small", "medium", "large")
VENDOR_SIZES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "amd": ("small", "medium"),
        "intel": ("small", "medium"),
        "qualcomm": ("small", "medium"),
        "apple": ("medium",),
    }
)
# The largest n and m (weight rows, tokens) that still take a size smaller than the next.
SMALL_UP_TO, MEDIUM_UP_TO = 32, 64


def llama_cpp_tiles(limits: Limits) -> dict[str, MulMmTile]:
    """llama.cpp's tile of each size at this device's subgroup, valid or not; shared fp16 where the device has it."""
    subgroup = limits.subgroup
    warp = min(max(subgroup, 8), 64)
    shared = "fp16" if limits.has("fp16") else "fp32"
    tiles = {
        "small": MulMmTile(
            max(subgroup, 32), 32, 32, 32, 8 if subgroup == 8 else 32, 32, 2, 2, 2, 1, max(subgroup, 8), shared
        ),
        "medium": MulMmTile(128, 64, 64, 32, warp, 32, 2, 4, 2, 1, warp, shared),
        "large": MulMmTile(128, 128, 128, 32, 2 * warp, 64, 2, 4, 4, 1, warp, shared),
    }
    if limits.vendor == "amd" and limits.subgroup_sizes == (64,):
        tiles["medium"] = MulMmTile(256, 64, 64, 32, 16, 16, 2, 2, 2, 1, 16, shared)
    return tiles


def llama_cpp_tile(problem: Problem, limits: Limits) -> MulMmTile:
    """The tile llama.cpp takes for this matmul, valid or not.

    Sizes other than the small one are left out where the device does not hold their shared bytes.
    """
    tiles = llama_cpp_tiles(limits)
    return tiles[llama_cpp_size(problem, limits, {size: _shared_bytes(tile) for size, tile in tiles.items()})]


def llama_cpp_size(problem: Problem, limits: Limits, shared_bytes: Mapping[str, int]) -> str:
    """Which size a matmul takes, given what each takes of shared memory."""
    sizes = [
        size
        for size in VENDOR_SIZES.get(limits.vendor, SIZES)
        if size == "small" or shared_bytes[size] <= limits.shared_bytes
    ] or ["small"]
    if problem.n <= SMALL_UP_TO or problem.m <= SMALL_UP_TO:
        return sizes[0]
    if len(sizes) <= 2 or problem.n <= MEDIUM_UP_TO or problem.m <= MEDIUM_UP_TO:
        return sizes[min(1, len(sizes) - 1)]
    return sizes[-1]


def stock(problem: Problem, limits: Limits, space: Iterable[MulMmTile]) -> MulMmTile | None:
    """llama.cpp's tile where it is valid here, else the valid tile nearest to it, None where there is none."""
    return nearest(llama_cpp_tile(problem, limits), limits, space, lambda t: not broken_rules(t, problem, limits))


def nearest(wanted: T, limits: Limits, space: Iterable[T], valid: Callable[[T], bool]) -> T | None:
    """`wanted` where it is valid, else the valid tile nearest to it, None where there is none.

    Nearest: block_size and the tile's sides kept, warp and thread shape and subgroup changed by the fewest factors of
    two; where no such tile is valid, the nearest of `space`. Ties go to the smaller numbers.
    """
    if valid(wanted):
        return wanted
    for candidates in (_same_block(wanted, limits), space):
        found = [tile for tile in candidates if valid(tile)]
        if found:
            return min(found, key=lambda tile: (_distance(tile, wanted), tile.numbers, tile.text()))
    return None


def _shared_bytes(tile: MulMmTile) -> int:
    return mul_mm_shared_bytes(tile.tile_n, tile.tile_m, tile.tile_k, tile.shared)


def _same_block(tile: T, limits: Limits) -> list[T]:
    powers = [2**i for i in range(9)]
    found: list[T] = []
    for subgroup in limits.subgroup_sizes or (limits.subgroup,):
        warps = tile.block_size // subgroup
        for warp_n in (p for p in powers if p <= tile.tile_n):
            across = tile.tile_n // warp_n
            if not warps or warps % across or tile.tile_m % (warps // across):
                continue
            warp_m = tile.tile_m * across // warps
            for iterations in powers[:3]:
                for thread_n in powers[:4]:
                    for thread_m in powers[:4]:
                        found.append(
                            dataclasses.replace(
                                tile,
                                subgroup=subgroup,
                                warp_n=warp_n,
                                warp_m=warp_m,
                                warp_iterations_n=iterations,
                                thread_n=thread_n,
                                thread_m=thread_m,
                            )
                        )
    return found


def _distance(tile: WarpTile, wanted: WarpTile) -> float:
    """Factors of two between the numbers, and one for each name that differs."""
    pairs = zip(tile.fields().values(), wanted.fields().values(), strict=True)
    return sum(abs(log2(a / b)) if isinstance(a, int) and isinstance(b, int) else float(a != b) for a, b in pairs)
