"""llama.cpp's static choice for its mat-vec shader: one subgroup a workgroup, all of it along k, a few rows."""

from __future__ import annotations

from warptile.contracts import Limits, Problem
from warptile.kernels.vulkan.mul_mat_vec.tile import MulMatVecTile

MOST_COLUMNS = 8
_SMALLEST_K_QUANT_WORKGROUP = 16


def stock(problem: Problem, limits: Limits) -> MulMatVecTile | None:
    """Rows a workgroup by format and vendor as ggml-vulkan.cpp creates its pipelines; None where m > 8.

    rm_stdq = 1 (2 on Intel) and rm_kq = 2; formats of 32 a block take 2 * rm_stdq rows, Q8_0 rm_stdq, K-quants and
    TQ formats rm_kq, codebook formats 2 * rm_kq; K-quants use at least 16 threads. The higher numbers for AMD's GCN
    are left out, because limits do not tell GCN from RDNA.
    """
    if problem.m > MOST_COLUMNS:
        return None
    rm_stdq = 2 if limits.vendor == "intel" else 1
    rm_kq = 2
    name = problem.format
    superblock = name.endswith("_K") or name.startswith(("TQ", "IQ", "MXFP"))
    if name == "Q8_0":
        rows = rm_stdq
    elif name.startswith(("IQ", "MXFP")):
        rows = 2 * rm_kq
    elif superblock:
        rows = rm_kq
    else:
        rows = 2 * rm_stdq
    threads = max(limits.subgroup, _SMALLEST_K_QUANT_WORKGROUP) if superblock else limits.subgroup
    return MulMatVecTile(lanes_n=1, split_k=threads, thread_n=rows, columns=problem.m, load_n=1, x_access="direct")
