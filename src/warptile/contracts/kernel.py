"""What a kernel is: rules, price, source and launch. Kernels know layouts, never formats' bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from warptile.contracts.errors import UnusableInput
from warptile.contracts.evidence import Arithmetic, BrokenRule
from warptile.contracts.launch import Chosen, DeviceWeights, Launch, Source
from warptile.contracts.limits import Limits
from warptile.contracts.price import Price
from warptile.contracts.problem import Problem
from warptile.contracts.runtime import Binary, Buffer
from warptile.contracts.tile import Tile


class Kernel(Protocol):
    """One way to compute y[m, n] = sum_k x[m, k] * w[n, k] with packed w."""

    name: str
    runtime: str
    tile_type: type[Tile]

    def space(self, problem: Problem, limits: Limits) -> Iterator[Tile]:
        """Candidate tiles, valid ones and not; the loop asks `broken_rules` of each."""
        ...

    def stock(self, problem: Problem, limits: Limits) -> Tile | None:
        """The tile a static table (llama.cpp's) picks here; None where this kernel has no such table."""
        ...

    def broken_rules(self, tile: Tile, problem: Problem, limits: Limits) -> list[BrokenRule]:
        """Every rule the tile breaks on this problem and device; empty when valid."""
        ...

    def price(self, tile: Tile, problem: Problem, limits: Limits) -> Price:
        """What the tile costs on paper. Defined for valid tiles."""
        ...

    def source(self, tile: Tile, problem: Problem, limits: Limits) -> Source:
        """The translation unit and its constants. Depends on n, k, m only where the tile says so."""
        ...

    def launch(
        self, binary: Binary, tile: Tile, problem: Problem, x: Buffer, w: DeviceWeights, y: Buffer
    ) -> tuple[Launch, ...]:
        """The dispatches that compute y: one a weight slice, more where the tile splits K."""
        ...

    def boundaries(self, tile: Tile) -> tuple[int, int, int]:
        """(m, n, k) steps at which the tile's control flow changes; the proof probes each -1, 0, +1."""
        ...

    def arithmetic(self, tile: Tile, problem: Problem) -> Arithmetic:
        """Operand and accumulator types and addition depth, for the proof's per-element bound."""
        ...


@runtime_checkable
class GroupedKernel(Kernel, Protocol):
    """A kernel of grouped problems (`Problem.grouped`), which refuses dense ones as dense kernels refuse those.

    Everything is asked as of a dense kernel; what it launches also reads which experts each token takes.
    """

    def launch_grouped(
        self, binary: Binary, tile: Tile, problem: Problem, x: Buffer, w: DeviceWeights, y: Buffer, chosen: Chosen
    ) -> tuple[Launch, ...]:
        """The dispatches that compute y, with x[x_rows, k], w[experts, n, k] and y[y_rows, n]."""
        ...


def launches_of(
    kernel: Kernel,
    binary: Binary,
    tile: Tile,
    problem: Problem,
    x: Buffer,
    w: DeviceWeights,
    y: Buffer,
    chosen: Chosen | None = None,
) -> tuple[Launch, ...]:
    """What a kernel launches for a problem: `chosen` goes to a grouped kernel, and must be there for it alone.

    Raises UnusableInput where it is not.
    """
    if isinstance(kernel, GroupedKernel):
        if chosen is None:
            raise UnusableInput(f"{kernel.name} takes expert ids")
        return kernel.launch_grouped(binary, tile, problem, x, w, y, chosen)
    if chosen is not None:
        raise UnusableInput(f"{kernel.name} does not take expert ids")
    return kernel.launch(binary, tile, problem, x, w, y)
