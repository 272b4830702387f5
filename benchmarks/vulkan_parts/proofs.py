"""The quick proof of a tile of each kernel, and of each arrangement of `mul_mm_coop`."""

from __future__ import annotations

import time
from collections.abc import Iterator

from vulkan_parts.bench import Bench
from warptile import kernels
from warptile.contracts import CandidateRejected, Kernel, Problem, Tile
from warptile.kernels.vulkan.mul_mm_coop import MulMmCoopTile
from warptile.proof import prove
from warptile.proof.references import ReferenceCache
from warptile.runtimes.vulkan.runtime import VulkanRuntime
from warptile.search import rank

SIX = ("Q4_0", "Q4_1", "Q5_0", "Q8_0", "Q4_K", "Q6_K")


def proof_tiles(device: VulkanRuntime, problem: Problem) -> Iterator[tuple[Kernel, Tile]]:
    """The best-priced tile of each kernel; of `mul_mm_coop` one for each arrangement."""
    limits = device.limits()
    for kernel in kernels.for_runtime("vulkan"):
        ranked = rank(problem, limits, [kernel])
        if ranked:
            yield kernel, ranked[0].tile
    coop = kernels.by_name("vulkan.mul_mm_coop")
    sides = next((c for c in limits.cooperative_matrices if (c.a_type, c.c_type) == ("fp16", "fp32")), None)
    if sides is None:
        return
    matrix = f"{sides.m}x{sides.n}x{sides.k}"
    for text in (
        "warps_n=2,warps_m=2,matrices_n=2,matrices_m=2,k_chunk=64,weights=registers,buffers=2",
        "warps_n=4,warps_m=1,matrices_n=4,matrices_m=2,k_chunk=64,weights=registers,prefetch=2,split_k=2,first=n",
        "warps_n=2,warps_m=2,matrices_n=2,matrices_m=2,k_chunk=32,buffers=2,split_k=2",
        "warps_n=4,warps_m=1,matrices_n=1,matrices_m=3,k_chunk=128,weights=warp,decode=fp32",
        "warps_n=2,warps_m=2,matrices_n=2,matrices_m=1,k_chunk=64,decode=fp32,prefetch=0,accumulator=fp16",
    ):
        tile = MulMmCoopTile.parse(f"operands=fp16,matrix={matrix},subgroup={limits.subgroup},{text}")
        if not coop.broken_rules(tile, problem, limits):
            yield coop, tile


def part_proof(bench: Bench) -> None:
    device, cache = bench.device, ReferenceCache()
    for name, dtype in [*((f, "fp32") for f in SIX), ("Q4_K", "fp16")]:
        problem = Problem(name, 200, 768, 33, dtype, dtype)
        pairs = list(proof_tiles(device, problem)) if dtype == "fp32" else [
            pair for pair in proof_tiles(device, problem) if pair[0].name.endswith("coop")
        ]  # fmt: skip
        sources = [kernel.source(tile, problem, device.limits()) for kernel, tile in pairs]
        device.compile_all(sources, 12)
        for kernel, tile in pairs:
            start = time.monotonic()
            if bench.left() < 5:
                print("proof: out of time")
                return
            row = {"part": "proof", "format": name, "dtype": dtype, "tile": tile.text()}
            try:
                verdict = prove(device, kernel, tile, problem, "quick", 0, cache=cache)
                row |= {"right": verdict.right, "failed": verdict.failed, "detail": verdict.detail,
                        "worst_ratio": verdict.worst_ratio, "nmse": verdict.nmse}  # fmt: skip
            except CandidateRejected as error:
                row |= {"right": False, "failed": error.outcome, "detail": str(error)}
            row["seconds"] = time.monotonic() - start
            bench.rows.append(row)
            if not row["right"]:
                print("NOT RIGHT", row, flush=True)
    rows = [r for r in bench.rows if r["part"] == "proof"]
    print(f"proof: {sum(r['right'] for r in rows)} of {len(rows)} right", flush=True)
