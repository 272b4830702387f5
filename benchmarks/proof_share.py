"""What proving takes of a tune: python benchmarks/proof_share.py MODEL.gguf [--device vulkan:0] [--most 0.2]

Tunes a model with empty folders and prints seconds in all, seconds of proofs (compiling left out) and their share.
Exits 1 where the share is more than `--most`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import warptile
from warptile.places import Places


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--device", default="vulkan:0")
    parser.add_argument("--m", default="128")
    parser.add_argument("--budget", type=float, default=300.0)
    parser.add_argument("--most", type=float, default=0.2)
    given = parser.parse_args()
    ms = tuple(int(m) for m in given.m.split(","))
    with tempfile.TemporaryDirectory() as folder:
        result = warptile.tune(
            str(given.model), device=given.device, ms=ms, budget=given.budget, places=Places.under(Path(folder)).ready()
        )
    share = result.proving / result.seconds
    print(
        f"{result.tried} proofs in {result.proving:.1f} s of {result.seconds:.1f} s: {share:.1%}"
        f" ({'at most' if share <= given.most else 'MORE THAN'} {given.most:.0%})"
    )
    return 0 if share <= given.most else 1


if __name__ == "__main__":
    sys.exit(main())
