"""What AMD's Vulkan compiler makes of Vulkan kernels, beside their prices; no AMD card is needed and nothing is run.

    benchmarks/mesa_newest.sh FOLDER gfx1201 benchmarks/amd_statistics.py [--format Q4_K Q6_K] [--all]

Tiles: the arms of `rdna4-bigtile` as published, the same with scales as matrices, and the stock and best-priced tiles
of `mul_mm`, `mul_mmq` and `mul_mm_coop`. Printed: shared bytes, registers and spills of both. The driver gives shared
memory out in granules; a tile agrees where the price rounded up to the granule is what was given out. Exits 1 where a
tile's shared bytes do not agree.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
from collections.abc import Iterator

from warptile import kernels, studies
from warptile.contracts import CandidateRejected, Kernel, Limits, Problem, Tile
from warptile.kernels.vulkan.mul_mm_coop import MulMmCoopTile
from warptile.places import Places
from warptile.runtimes import open_device
from warptile.search import rank

GRANULES = (256, 512, 1024)
SHAPE = (3072, 2048, 128)


def tiles(name: str, limits: Limits) -> Iterator[tuple[str, Kernel, Tile]]:
    """(label, kernel, tile) of everything looked at for a format."""
    coop = kernels.by_name("mul_mm_coop")
    for arm in studies.load("rdna4-bigtile").arms:
        text = arm.sizes[0].tiles[f"qkv {name}"]
        tile = kernels.parse_tile(text)[1]
        yield arm.name, coop, tile
        if isinstance(tile, MulMmCoopTile):
            changed = {"scales": "broadcast", "decode": "fp16", "pad": 16, "prefetch": 1}
            yield f"{arm.name}, as matrices", coop, dataclasses.replace(tile, **changed)  # type: ignore[arg-type]
    problem = Problem(name, *SHAPE)
    for each in ("mul_mm", "mul_mmq", "mul_mm_coop"):
        kernel = kernels.by_name(each)
        stock = kernel.stock(problem, limits)
        if stock is not None:
            yield f"{each} stock", kernel, stock
        for i, found in enumerate(rank(problem, limits, [kernel])[:3], 1):
            yield f"{each} price {i}", kernel, found.tile


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="vulkan:0")
    parser.add_argument("--format", nargs="+", default=["Q4_K", "Q6_K"])
    own = parser.parse_args()
    rows: list[tuple[str, str, int, int, int | None, int | None]] = []
    with tempfile.TemporaryDirectory() as folder:
        device = open_device(own.device, Places.under(folder).ready())
        limits, identity = device.limits(), device.identity()
        print(f"{identity.device}, {identity.driver}: statistics of a compiler, nothing is run")
        for name in own.format:
            problem = Problem(name, *SHAPE)
            for label, kernel, tile in tiles(name, limits):
                broken = kernel.broken_rules(tile, problem, limits)
                if broken:
                    print(f"{name} {label}: refused, {broken[0].text()}")
                    continue
                price = kernel.price(tile, problem, limits)
                try:
                    found = device.resources(device.compile(kernel.source(tile, problem, limits)))
                except CandidateRejected as error:
                    print(f"{name} {label}: {error}")
                    continue
                if found is None or found.shared_bytes is None:
                    print(f"{name} {label}: the driver has no statistics")
                    return 1
                rows.append((name, label, price.shared_bytes, found.shared_bytes, found.registers, price.registers))
                print(
                    f"{name} {label}: shared {price.shared_bytes} B, given out {found.shared_bytes}; registers"
                    f" {price.registers} on paper, {found.registers} compiled; spilled {found.spilled_registers},"
                    f" scratch {found.scratch_bytes} B",
                    flush=True,
                )
        device.close()
    granule = next((g for g in GRANULES if all(-(-paper // g) * g == given for _, _, paper, given, _, _ in rows)), None)
    if granule is None:
        wrong = [
            f"{n} {label} {paper} -> {given}"
            for n, label, paper, given, _, _ in rows
            if not paper <= given < paper + 1024
        ]
        print(f"shared bytes do not agree at any granule of {GRANULES}: {wrong}")
        return 1
    print(f"shared bytes of {len(rows)} tiles agree, given out in granules of {granule} B")
    return 0


if __name__ == "__main__":
    sys.exit(main())
