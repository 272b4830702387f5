"""What is known of one problem in a tune."""

from __future__ import annotations

from dataclasses import dataclass, field

from warptile.tables import Point
from warptile.tuning.notes import Expected
from warptile.tuning.order import Group
from warptile.tuning.result import Reuse


@dataclass
class Standing:
    """What is known of one problem so far.

    stock: the static table's tile, None where there is none or it was rejected (stock_note says why). timed: seconds of
    screened tiles, on one scale, in the order in which they were first measured; proved: which of them were found
    right. expected: what the corrected price said of tiles before they were measured here. kept: the table's point for
    exactly this m; stale: why it does not hold, "" where it does.
    """

    group: Group
    stock: str | None
    stock_note: str
    timed: dict[str, float]
    proved: set[str]
    kept: Point | None = None
    stale: str = ""
    reuse: Reuse = "new"
    expected: dict[str, Expected] = field(default_factory=dict)

    @property
    def seconds(self) -> dict[str, float]:
        """Of screened tiles that are proved."""
        return {tile: seconds for tile, seconds in self.timed.items() if tile in self.proved}

    @property
    def unproved(self) -> dict[str, float]:
        """Of the other screened tiles."""
        return {tile: seconds for tile, seconds in self.timed.items() if tile not in self.proved}

    @property
    def best(self) -> tuple[str, float] | None:
        """The fastest screened tile that is proved, and its seconds."""
        return min(self.seconds.items(), key=lambda each: (each[1], each[0]), default=None)

    def drop(self, tile: str) -> None:
        """A tile is out."""
        self.timed.pop(tile, None)
        self.proved.discard(tile)
