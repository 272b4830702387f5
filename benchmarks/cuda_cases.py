"""What the CUDA benchmark measures: shapes, formats, candidate tiles, and drawn weights."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warptile import formats, kernels
from warptile.contracts import Limits, Problem
from warptile.kernels.triton.common import OPERANDS, arranged
from warptile.proof.weights import random_blocks
from warptile.weights import QuantTensor

SHAPES = ((4096, 14336), (14336, 4096), (4096, 4096), (17408, 5120), (5120, 17408))
TOKENS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 8192)
FORMATS = ("Q4_K", "Q6_K", "Q8_0", "Q4_0", "PTQ1_0")
DRAWN_ROWS = 61

# (tile_n, split_k, warps, stages) by column tile; several are raced for each m.
GEMM_TILES = {
    8: ((64, 8, 4, 5), (64, 4, 4, 5), (128, 8, 4, 5)),
    16: ((64, 4, 4, 5), (64, 8, 4, 5), (64, 8, 4, 3), (128, 8, 4, 5), (128, 8, 4, 4), (128, 4, 8, 5)),
    32: ((64, 4, 4, 4), (64, 8, 4, 4), (128, 8, 4, 4), (128, 4, 8, 4)),
    64: ((64, 2, 4, 4), (64, 4, 4, 4), (64, 8, 4, 3), (64, 4, 4, 5), (64, 4, 4, 3), (128, 4, 8, 4), (128, 8, 8, 3)),
    128: ((64, 1, 4, 3), (64, 2, 4, 3), (64, 4, 4, 3), (64, 4, 4, 4), (128, 1, 8, 3), (128, 4, 8, 3)),
    256: ((64, 1, 4, 3), (64, 1, 4, 2), (128, 1, 8, 2), (128, 1, 8, 3)),
}
# (tile_n, warps, stages) by column tile.
INT8_TILES = {
    16: ((64, 4, 3), (128, 8, 3)),
    32: ((64, 4, 3), (128, 8, 3)),
    64: ((64, 8, 3), (128, 8, 2)),
    128: ((64, 8, 2), (128, 8, 2)),
}
# (tile_n, steps, warps, stages)
GEMV_TILES = ((8, 4, 4, 3), (16, 4, 4, 3), (8, 8, 4, 2), (16, 8, 8, 3))
GEMV_MOST = 8
# (tile_n, warps, steps, stages)
DEQUANTIZE_TILES = ((64, 8, 4, 2), (64, 4, 4, 1), (32, 4, 8, 3), (32, 4, 2, 1))
TINY_INT8 = {8: ((16, 1, 1),)}
TINY_GEMM = {8: ((16, 2, 1, 2),), 16: ((16, 1, 1, 2),)}
TINY_GEMV = ((8, 2, 1, 1),)


def column_tiles(m: int) -> tuple[int, ...]:
    """The column tiles worth trying at m: the smallest that holds m, and its neighbours."""
    held = min((c for c in GEMM_TILES if c >= m), default=256)
    below = [c for c in GEMM_TILES if c < held]
    return (*below[-1:], held) if m > 8 else (held, 16)


def candidates(problem: Problem, limits: Limits, tiny: bool = False) -> Iterator[str]:
    """Texts of the valid tiles to race on a problem; "triton.dequantize" (the baseline) last."""
    step = arranged(problem).step
    operand = OPERANDS[problem.x_dtype]
    texts = []
    if problem.m <= GEMV_MOST:
        tokens = next(t for t in (1, 2, 4, 8) if t >= problem.m)
        for tile_n, steps, warps, stages in TINY_GEMV if tiny else GEMV_TILES:
            texts.append(f"triton.gemv:tile_n={tile_n},tile_m={tokens},steps={steps},warps={warps},stages={stages}")
    table = TINY_GEMM if tiny else GEMM_TILES
    for tile_m in TINY_GEMM if tiny else column_tiles(problem.m):
        for tile_n, split, warps, stages in table[tile_m]:
            texts.append(
                f"triton.gemm:tile_n={tile_n},tile_m={tile_m},tile_k={step},split_k={split},warps={warps},"
                f"stages={stages},operand={operand}"
            )
    int8 = TINY_INT8 if tiny else INT8_TILES
    for tile_m in int8 if tiny else column_tiles(problem.m):
        for tile_n, warps, stages in int8.get(min(tile_m, max(int8)), ()):
            texts.append(
                f"triton.gemm_int8:tile_n={tile_n},tile_m={min(tile_m, max(int8))},tile_k={step},warps={warps},"
                f"stages={stages}"
            )
    for tile_n, warps, steps, stages in DEQUANTIZE_TILES if problem.m >= 512 else DEQUANTIZE_TILES[:1]:
        decode = "plain" if problem.x_dtype == "fp32" else "half"
        texts.append(f"triton.dequantize:tile_n={tile_n},warps={warps},steps={steps},stages={stages},decode={decode}")
    for text in dict.fromkeys(texts):
        kernel, tile = kernels.parse_tile(text)
        if not kernel.broken_rules(tile, problem, limits):
            yield tile.text()


def drawn_weight(name: str, n: int, k: int, seed: int = 0) -> QuantTensor:
    """Random blocks with a trained model's scales: 61 drawn rows, repeated along n."""
    found = formats.by_name(name)
    rows = min(n, DRAWN_ROWS)
    blocks = random_blocks(found, rows * k // found.block_size, np.random.default_rng(seed)).reshape(rows, -1)
    return QuantTensor.from_blocks(found, np.resize(blocks, (n, blocks.shape[1])), (n, k))
