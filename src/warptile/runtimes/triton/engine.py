"""Serving on torch tensors: which tile, compiled once, launched on the caller's stream."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from warptile import formats, kernels
from warptile.contracts import (
    BrokenRule,
    Chosen,
    DeviceWeights,
    DoesNotFit,
    InvalidTile,
    Kernel,
    Problem,
    Tile,
    UnusableInput,
    WeightSlice,
    launches_of,
)
from warptile.kernels.price_model import ceil_div
from warptile.kernels.triton.common import OPERANDS
from warptile.kernels.triton.gemm.tile import GemmTile
from warptile.kernels.triton.gemm_id.tile import GemmIdTile
from warptile.kernels.triton.matrix import architecture
from warptile.kernels.triton.program import Program
from warptile.layouts.experts import expert_stride
from warptile.layouts.triton import NAME, arrangement
from warptile.runtimes.triton.backends import Backend, Interpreter, backend_of
from warptile.runtimes.triton.compiling import imported
from warptile.runtimes.triton.running import Launcher, Run, Scratch
from warptile.search import Candidate, rank_all

DTYPES = {torch.float16: "fp16", torch.bfloat16: "bf16", torch.float32: "fp32"}
INVARIANT_TOKENS = 64
X_STRIDE, Y_STRIDE = 4, 5
Router = Callable[[Problem], str | None]


class _Extent:
    """Stands for a buffer where a kernel describes a launch on tensors that it does not touch itself."""

    nbytes = 0


class _Described:
    """Stands for a binary where only the launch's scalars and grid are wanted."""

    id = 0
    key = ""
    compile_seconds = 0.0
    source: Any = None
    helpers: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Prepared:
    """Everything of a launch but the tensors."""

    enqueue: Callable[..., None]
    launchers: tuple[Launcher, ...]
    scalars: tuple[int, ...]
    grid: tuple[int, int, int]


class Engine:
    """Launches kernels on one device's tensors. router: says which tile serves a problem, None where it does not
    know."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.limits = backend.limits()
        self.routers: list[Router] = []
        self._scratch = Scratch()
        self._programs: dict[str, tuple[Callable[..., None], tuple[Launcher, ...]]] = {}
        self._prepared: dict[tuple[Problem, str], Prepared] = {}
        self._routes: dict[Problem, str] = {}

    def tile(self, problem: Problem) -> str:
        """The text of the tile that serves a problem: a router's, else the best-priced valid one.

        Unmeasured, activations stay as they are: nobody has asked for a kernel that quantizes them.

        Raises UnusableInput where no kernel can serve it.
        """
        found = self._routes.get(problem)
        if found is None:
            found = next((text for router in self.routers if (text := router(problem)) is not None), None)
            if found is None:
                ranking = rank_all(problem, self.limits, kernels.for_runtime("triton"))
                kept = (c.tile.text() for c in ranking.candidates if not _quantizes(c, problem))
                found = next(kept, None)
                if found is None:
                    raise UnusableInput(f"{problem.text()}: no Triton kernel has a valid tile for it here")
            if len(self._routes) > 1 << 16:
                self._routes.clear()
            self._routes[problem] = found
        return found

    def key(self, kernel: Kernel, tile: Tile, problem: Problem) -> str:
        """`Binary.key` of a tile on a problem."""
        return self.backend.key(Program.parse(kernel.source(tile, problem, self.limits)))

    def invariant_tile(self, problem: Problem) -> str:
        """One tile for every m, so that a row's sum is computed by the same instructions in the same order whatever
        m."""
        step = arrangement(formats.by_name(problem.format).layout, problem.k).step
        tile_n = architecture(self.limits).least_n
        split = 1
        while split < 4 and split * 2 <= problem.k // step:
            if ceil_div(problem.n, tile_n) * split * 2 > max(1, self.limits.units):
                break
            split *= 2
        operand = OPERANDS[problem.x_dtype]
        for stages in (4, 3, 2):
            tile = GemmTile(tile_n, INVARIANT_TOKENS, step, split, 8, 4, stages, operand)
            if not kernels.by_name("triton.gemm").broken_rules(tile, problem, self.limits):
                return tile.text()
        raise UnusableInput(f"{problem.text()}: no tile for results that do not depend on m")

    def prepared(self, problem: Problem, tile: str) -> Prepared:
        """The compiled launch of a tile on a problem. Raises InvalidTile or DoesNotFit with the rule it breaks."""
        key = (problem, tile)
        found = self._prepared.get(key)
        if found is None:
            kernel, parsed = kernels.parse_tile(tile)
            if kernel.runtime != "triton":
                raise UnusableInput(f"kernel {kernel.name} does not run on torch tensors")
            _refuse(kernel.broken_rules(parsed, problem, self.limits))
            if len(self._prepared) > 1 << 14:
                self._prepared.clear()
            found = self._prepared[key] = self._prepare(problem, kernel, parsed)
        return found

    def invariant_id_tile(self, problem: Problem) -> str:
        """`invariant_tile` of a grouped problem: rows are always sorted, tiles whole, k is never split."""
        step = arrangement(formats.by_name(problem.format).layout, problem.k).step
        tile_n, operand = architecture(self.limits).least_n, OPERANDS[problem.x_dtype]
        for stages in (4, 3, 2):
            tile = GemmIdTile(tile_n, INVARIANT_TOKENS, step, "sorted", 0, 1, 1, 4, stages, operand)
            if not kernels.by_name("triton.gemm_id").broken_rules(tile, problem, self.limits):
                return tile.text()
        raise UnusableInput(f"{problem.text()}: no tile for results that do not depend on m")

    def run(
        self, prepared: Prepared, x: torch.Tensor, words: torch.Tensor, y: torch.Tensor, *chosen: torch.Tensor
    ) -> None:
        """Enqueue on the current stream: y[m, n] from x[m, k] (unit stride along k) and quad words.

        chosen: of a grouped problem ids and weights, as its kernel's launch names them.
        """
        scalars = list(prepared.scalars)
        scalars[X_STRIDE], scalars[Y_STRIDE] = x.stride(0), y.stride(0)
        executed = self._scratch.executed(x.device)
        run = Run(prepared.launchers, executed, x.device, self._scratch)
        prepared.enqueue(run, (x, words, y, *chosen), scalars, prepared.grid)

    def decode(self, prepared: Prepared, words: torch.Tensor, dense: torch.Tensor) -> None:
        """Enqueue on the current stream: dense[n, k] from quad words; prepared: a tile of `triton.dequantize`."""
        _, rows, k, _, _, _, *planes, _ = prepared.scalars
        executed = self._scratch.executed(dense.device)
        prepared.launchers[0](prepared.grid, words, dense, executed, rows, k, *planes)

    def _prepare(self, problem: Problem, kernel: Kernel, tile: Tile) -> Prepared:
        source = kernel.source(tile, problem, self.limits)
        program = self._programs.get(source.text)
        if program is None:
            parsed = Program.parse(source)
            key = self.backend.key(parsed)
            launchers = tuple(self.backend.build(build, key, None) for build in parsed.builds)
            program = self._programs[source.text] = (imported(parsed.enqueue), launchers)
        starts, _ = arrangement(formats.by_name(problem.format).layout, problem.k).offsets(problem.n)
        stride = expert_stride(formats.by_name(problem.format), problem.n, problem.k, NAME)
        piece = WeightSlice(_Extent(), 0, problem.n, starts, 0, problem.experts, stride)
        weights = DeviceWeights(problem.format, "", problem.n, problem.k, (piece,), problem.experts)
        chosen = Chosen(_Extent()) if problem.grouped else None
        (launch,) = launches_of(kernel, _Described(), tile, problem, _Extent(), weights, _Extent(), chosen)
        return Prepared(program[0], program[1], launch.scalars, launch.grid)


def _quantizes(candidate: Candidate, problem: Problem) -> bool:
    return kernels.by_name(candidate.kernel).arithmetic(candidate.tile, problem).quantizes_activations


def _refuse(broken: list[BrokenRule]) -> None:
    if broken:
        kind = DoesNotFit if all(rule.well_formed for rule in broken) else InvalidTile
        first = next((rule for rule in broken if not rule.well_formed), broken[0])
        raise kind(first.rule, first.numbers)


@cache
def _engine(kind: str, index: int) -> Engine:
    if kind == "cuda" and index >= (here := torch.cuda.device_count()):
        raise UnusableInput(f"there is no device cuda:{index} here: torch sees {here} CUDA or ROCm devices")
    return Engine(Interpreter() if kind == "cpu" else backend_of(index))


def engine_of(device: torch.device) -> Engine:
    """The engine of a torch device.

    Raises UnusableInput for the host's processor without Triton's interpreter, and for a card that is not here.
    """
    if device.type == "cuda":
        if device.index is None and not torch.cuda.is_available():
            raise UnusableInput("there is no CUDA or ROCm device here that torch sees")
        return _engine("cuda", torch.cuda.current_device() if device.index is None else device.index)
    if device.type != "cpu" or not interpreting():
        raise UnusableInput(f"Triton kernels take CUDA or ROCm tensors; this one is on {device}")
    return _engine("cpu", 0)


def interpreting() -> bool:
    """Whether Triton's interpreter stands in for a card."""
    return os.environ.get("TRITON_INTERPRET") == "1"


__all__ = ["DTYPES", "Engine", "Prepared", "Router", "engine_of", "interpreting"]
