"""The grouped form of a dense kernel: the same tiles, on rows of x that go to one expert."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator

from warptile.contracts import (
    Arithmetic,
    Binary,
    BrokenRule,
    Buffer,
    Chosen,
    DeviceWeights,
    Kernel,
    Launch,
    Limits,
    Price,
    Problem,
    Source,
    Tile,
    UnusableInput,
)
from warptile.kernels.vulkan import experts
from warptile.kernels.vulkan.experts_price import grouped_price
from warptile.kernels.vulkan.register_tile import grid_rule


class ByExperts(ABC):
    """Computes y[slot, n] = sum_k x[row of slot, k] * w[ids[slot], n, k] as the dense kernel does; where y is summed,
    over a token's slots in their order.

    order: "sorted" or "slots", as `experts` says. The tile type is the dense kernel's with another name.
    """

    name: str
    runtime = "vulkan"
    tile_type: type[Tile]
    order: str

    def __init__(self, dense: Kernel) -> None:
        self.dense = dense

    @abstractmethod
    def tile_m(self, tile: Tile) -> int:
        """Rows of x a workgroup takes."""

    @abstractmethod
    def grid(self, tile: Tile, rows: int, tiles: int) -> tuple[int, int, int]:
        """Workgroups for `rows` rows of w an expert and `tiles` tiles of rows of x."""

    @abstractmethod
    def source(self, tile: Tile, problem: Problem, limits: Limits) -> Source:
        """See `Kernel`."""

    def space(self, problem: Problem, limits: Limits) -> Iterator[Tile]:
        """Those of the dense kernel for the mean group that has a row, or for one row."""
        return (self.renamed(tile) for tile in self.dense.space(self.group(problem), limits))

    def stock(self, problem: Problem, limits: Limits) -> Tile | None:
        """What the dense kernel's static table picks for that group."""
        found = self.dense.stock(self.group(problem), limits) if problem.grouped else None
        return None if found is None else self.renamed(found)

    def broken_rules(self, tile: Tile, problem: Problem, limits: Limits) -> list[BrokenRule]:
        """The dense kernel's rules on one expert, and those of grouped problems."""
        own = self.own(tile)
        broken = experts.rules(problem, limits) + self.dense.broken_rules(own, experts.dense(problem, 1), limits)
        if broken:
            return broken
        return grid_rule(self.grid(own, problem.n, self.tiles(own, problem)), limits)

    def price(self, tile: Tile, problem: Problem, limits: Limits) -> Price:
        """See `experts_price`."""
        own = self.own(tile)
        sorts = self.order == "sorted"
        return grouped_price(problem, limits, self.tile_m(own), lambda p: self.dense.price(own, p, limits), sorts)

    def launch(
        self, binary: Binary, tile: Tile, problem: Problem, x: Buffer, w: DeviceWeights, y: Buffer
    ) -> tuple[Launch, ...]:
        """Raises UnusableInput: see `launch_grouped`."""
        raise UnusableInput(f"{self.name} takes expert ids")

    def launch_grouped(
        self, binary: Binary, tile: Tile, problem: Problem, x: Buffer, w: DeviceWeights, y: Buffer, chosen: Chosen
    ) -> tuple[Launch, ...]:
        """See `experts.launches`."""
        own = self.own(tile)
        return experts.launches(
            binary,
            problem,
            x,
            w,
            y,
            chosen,
            self.order,
            self.tile_m(own),
            lambda rows, tiles: self.grid(own, rows, tiles),
        )

    def boundaries(self, tile: Tile) -> tuple[int, int, int]:
        """The dense kernel's."""
        return self.dense.boundaries(tile)

    def arithmetic(self, tile: Tile, problem: Problem) -> Arithmetic:
        """The dense kernel's: a row's sum is computed alike, whichever rows lie beside it."""
        return self.dense.arithmetic(tile, problem)

    def tiles(self, tile: Tile, problem: Problem) -> int:
        """Tiles of rows of x that any ids make at most."""
        return experts.most_tiles(problem, self.tile_m(tile)) if self.order == "sorted" else problem.slots

    def group(self, problem: Problem) -> Problem:
        """The dense problem of the mean group that has a row; of one row where nothing is sorted."""
        if self.order != "sorted":
            return experts.dense(problem, 1)
        _, touched = experts.mean_tiles(problem, 1)
        return experts.dense(problem, round(problem.slots / max(1.0, touched)))

    def renamed(self, tile: Tile) -> Tile:
        """A tile of the dense kernel as this one's."""
        return self.tile_type(**{f.name: getattr(tile, f.name) for f in dataclasses.fields(tile)})

    def own(self, tile: Tile) -> Tile:
        """`tile`. Raises TypeError for another kernel's."""
        if not isinstance(tile, self.tile_type):
            raise TypeError(f"{self.name} takes a {self.tile_type.__name__}, not {type(tile).__name__}")
        return tile

    def with_experts(self, source: Source, problem: Problem, limits: Limits) -> Source:
        """The product's source with the bindings, scalars and helpers of grouped kernels."""
        return dataclasses.replace(
            source,
            bindings=experts.BINDINGS[self.order],
            scalars=experts.SCALARS,
            helpers=experts.helpers(problem, self.order, limits),
        )
