"""What a proof asks of the worker that holds the device: arguments and values pickle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from warptile import kernels
from warptile.contracts import CompileFailed, Instrument, Kernel, Problem, Runtime, Tile, UnusableInput, Verdict, Wrong
from warptile.proof.instrumented import instrumented
from warptile.proof.proving import prove
from warptile.proof.random_shapes import prove_random
from warptile.proof.references import ReferenceCache
from warptile.weights import QuantTensor

Resolve = Callable[[str], tuple[Kernel, Tile]]
_REFERENCES = "proof.references"
_CHECKED: tuple[Instrument, ...] = ("checked",)
WATCHED = frozenset({"outside", "barrier", "race", "uninitialised", "once"})
"""Checks whose word of a checked build is enough to reject a tile that is about to be kept."""


@dataclass(frozen=True)
class RealWeights:
    """A tensor of a GGUF file to prove on beside drawn weights: `rows` of its rows, evenly spread."""

    path: str
    tensor: str
    rows: int = 64


def prove_job(
    runtime: Runtime,
    tile: str,
    problem: Problem,
    level: str = "quick",
    seed: int = 0,
    real: RealWeights | None = None,
    deadline: float | None = None,
    resolve: Resolve = kernels.parse_tile,
    seen: set[object] | None = None,
) -> Verdict:
    """Prove a tile, given by its text, on a problem. resolve: finds its kernel. seen: as in `prove`.

    References are kept in `runtime.scratch` for the next job. Raises what `prove` raises, and UnusableInput where the
    real tensor is unusable or is not a weight of the problem's format and k.
    """
    kernel, parsed = resolve(tile)
    cache = scratch(runtime).setdefault(_REFERENCES, ReferenceCache())
    blocks = None if real is None else real_blocks(real, problem)
    return prove(runtime, kernel, parsed, problem, level, seed, blocks, deadline=deadline, cache=cache, seen=seen)


def prove_random_job(
    runtime: Runtime, tile: str, problem: Problem, seconds: float, seed: int = 0, resolve: Resolve = kernels.parse_tile
) -> Verdict:
    """Random shapes of a tile for `seconds`; see `random_shapes`. Raises what `prove_random` raises."""
    kernel, parsed = resolve(tile)
    cache = scratch(runtime).setdefault(_REFERENCES, ReferenceCache())
    return prove_random(runtime, kernel, parsed, problem, seconds, seed, cache=cache)


def watch_job(
    runtime: Runtime, tile: str, problem: Problem, seed: int = 0, resolve: Resolve = kernels.parse_tile
) -> None:
    """A checked build of a tile on one small shape. Raises Wrong with what a check of `WATCHED` finds.

    Where the rewritten kernel does not run to its end, or its output is none, the rewriting or the driver may be to
    blame and not the tile, whose own proof was right: raises CompileFailed, and what `instrumented` raises.
    """
    kernel, parsed = resolve(tile)
    cache = scratch(runtime).setdefault(_REFERENCES, ReferenceCache())
    found = instrumented(runtime, kernel, parsed, problem, "winner", seed, cache, instruments=_CHECKED)
    if found is not None:
        kind = Wrong if found.check in WATCHED else CompileFailed
        raise kind(f"{found.check}: {found.detail}")


def real_blocks(real: RealWeights, problem: Problem) -> NDArray[np.uint8]:
    """u8[rows, row bytes]: first row, last row and rows evenly between. Raises UnusableInput."""
    tensor = QuantTensor.from_gguf(real.path, real.tensor)
    n, k = tensor.shape
    if tensor.format.name != problem.format or k != problem.k:
        raise UnusableInput(
            f"tensor {real.tensor} is {tensor.format.name} of k={k}, the problem is {problem.format} of k={problem.k}"
        )
    picked = np.unique(np.linspace(0, n - 1, min(n, real.rows)).astype(np.int64))
    return np.ascontiguousarray(tensor.blocks[picked])


def scratch(runtime: Runtime) -> dict[str, Any]:
    """The dictionary that a runtime in a worker keeps between jobs."""
    return cast(dict[str, Any], runtime.scratch)  # type: ignore[attr-defined]
