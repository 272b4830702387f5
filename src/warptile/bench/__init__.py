"""Benchmarks a person asks for. `ops`: the matmuls of a shape file, the served tile against the stock, paired."""

from warptile.bench.ops import OpRow, OpsReport, bench_ops

__all__ = ["OpRow", "OpsReport", "bench_ops"]
