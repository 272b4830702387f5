"""What a tuple costs on paper: the price of this project's kernel with the same parameters, shared bytes exact."""

from __future__ import annotations

import dataclasses

from warptile import formats
from warptile.contracts import Limits, Price, Problem
from warptile.kernels.vulkan.llama_cpp.tile import LlamaCppTile
from warptile.kernels.vulkan.mul_mm import price as mul_mm_price
from warptile.kernels.vulkan.mul_mm.tile import MulMmTile
from warptile.kernels.vulkan.mul_mmq import price as mul_mmq_price
from warptile.kernels.vulkan.mul_mmq.tile import MulMmqTile


def price(tile: LlamaCppTile, problem: Problem, limits: Limits, shared_bytes: int) -> Price:
    """Price of a valid tile. shared_bytes: as the shader declares them."""
    numbers = ",".join(map(str, tile.numbers))
    if tile.shader == "mul_mmq":
        found = mul_mmq_price.price(MulMmqTile.parse(numbers), problem, limits)
    else:
        fmt = formats.by_name(problem.format)
        own = MulMmTile.parse(f"{numbers},shared={tile.operands}")
        found = mul_mm_price.price(own, problem, limits, 8 * fmt.block_bytes / fmt.block_size)
    return dataclasses.replace(found, shared_bytes=shared_bytes)
