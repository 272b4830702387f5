"""One GPU through Vulkan: every kernel proved, cooperative-matrix tiles and mat-vec timed on Q4_K at (n 4096, k 14336).

    python benchmarks/vulkan_gpu.py [--part proof gemm vec] [--m 128 512 2048] [--budget 400] [--json FILE] [--keep 8]

proof: the quick proof of a tile of each kernel, and of each arrangement of `mul_mm_coop`, on six formats. gemm: a list
of `mul_mm_coop` tiles; each is compiled, its whole output checked against float64 within the proof's bound, screened,
and the fastest `--keep` are timed in interleaved rounds, on weights that exceed the cache. vec: `mul_mat_vecq` and
`mul_mat_vec` at m = 1 beside a pure read of as many bytes, all timed launch by launch with a barrier between. Printed:
medians with the 2.5 % and 97.5 % quantiles of a bootstrap, the driver's registers and shared bytes beside the price's.
Everything goes to the JSON file.

Times are sums of a tile's launches (parts of k and their sum). Activations and outputs are fp16 unless --dtype says so.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from vulkan_parts.bench import Bench
from vulkan_parts.gemm import part_gemm
from vulkan_parts.proofs import part_proof
from vulkan_parts.vec import part_vec

from warptile.places import Places
from warptile.runtimes import open_device
from warptile.runtimes.vulkan.matrix_order import held_elements
from warptile.runtimes.vulkan.runtime import VulkanRuntime


def table(rows: Sequence[dict[str, Any]], keep: int) -> None:
    """The best of each part, short."""
    print("\npart m | us [interval] | TFLOP/s or x read | registers driver/price, shared driver/price, spill | tile")
    for part, m in sorted({(r["part"], r.get("m", 0)) for r in rows if "us" in r and r["part"] != "without"}, key=str):
        timed = sorted(
            (r for r in rows if (r["part"], r.get("m", 0)) == (part, m) and "us" in r), key=lambda r: r["us"]
        )
        for r in timed[:keep]:
            rate = f"{r['tflops']:.0f}" if "tflops" in r else f"{r.get('to_read', 1):.3f}"
            print(
                f"{part} {m} | {r['us']:.2f} [{r['us_low']:.2f}, {r['us_high']:.2f}] | {rate} | "
                f"{r.get('registers')}/{r.get('price_registers')} {r.get('shared')}/{r.get('price_shared')} "
                f"{r.get('spill')} | {r.get('tile', r)}"
            )
    for m in sorted({r["m"] for r in rows if r["part"] == "gemm"}):
        own = [r for r in rows if r["part"] == "gemm" and r["m"] == m and "screened_us" in r]
        unequal = [r for r in own if r.get("shared") not in (None, r["price_shared"])]
        if len(own) > 2:
            a, b = (np.argsort(np.argsort([r[key] for r in own])) for key in ("price_us", "screened_us"))
            rho = float(np.corrcoef(a, b)[0, 1])
            print(f"m {m}: {len(own)} tiles, Spearman of price and time {rho:.2f}, "
                  f"{len(unequal)} with other shared bytes than priced")  # fmt: skip
    wrong = [r for r in rows if r.get("right") is False]
    print(
        f"{len(wrong)} rows not right"
        + "".join(f"\n  {r['tile']}: {r.get('failed')} {r.get('detail', '')}" for r in wrong[:12])
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="vulkan:0")
    parser.add_argument("--part", nargs="+", default=["proof", "gemm", "vec"])
    parser.add_argument("--n", type=int, default=4096)
    parser.add_argument("--k", type=int, default=14336)
    parser.add_argument("--m", nargs="+", type=int, default=[128, 512, 2048])
    parser.add_argument("--budget", type=float, default=400.0)
    parser.add_argument("--keep", type=int, default=8)
    parser.add_argument("--dtype", default="fp16")
    parser.add_argument("--tile", nargs="*", default=[])
    parser.add_argument("--quick", action="store_true", help="fewer tiles")
    parser.add_argument("--json", type=Path, default=Path("vulkan_gpu.json"))
    parser.add_argument("--cache", type=Path, default=Path("/tmp/warptile-bench"))
    own = parser.parse_args()
    start = time.monotonic()
    device = open_device(own.device, Places.under(own.cache))
    assert isinstance(device, VulkanRuntime)
    print(device.identity(), "matrix order", device.limits().matrix_order or "unknown", flush=True)
    held = held_elements(device)
    if held is not None:
        print("B of lanes 0, 1, 5, column and k:", [[divmod(int(v), 16) for v in held[0, i]] for i in (0, 1, 5)])
        print("sums of lanes 0, 1, 5, row and column:", [[divmod(int(v), 16) for v in held[1, i]] for i in (0, 1, 5)])
    bench = Bench(device, own.dtype, own.n, own.k, start + own.budget)
    try:
        if "proof" in own.part:
            part_proof(bench)
        if "vec" in own.part:
            part_vec(bench, own.keep)
        if "gemm" in own.part:
            part_gemm(bench, own.m, own.keep, own.quick, own.tile)
    finally:
        limits = device.limits()
        head = {"identity": device.identity().to_json(), "units": limits.units, "features": sorted(limits.features),
                "matrices": [str(c) for c in limits.cooperative_matrices], "vendor": limits.vendor}  # fmt: skip
        own.json.write_text(json.dumps({"device": head, "rows": bench.rows}, indent=1))
        table(bench.rows, own.keep)
        print(f"{time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
