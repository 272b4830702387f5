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

    stock: the static table's tile, None where there is none or it was rejected (stock_note says why). seconds: of
    screened tiles that were proved; unproved: of others; all on one scale. expected: what the corrected price said of
    tiles before they were measured here. kept: the table's point for exactly this m; stale: why it does not hold, ""
    where it does.
    """

    group: Group
    stock: str | None
    stock_note: str
    seconds: dict[str, float]
    kept: Point | None = None
    stale: str = ""
    reuse: Reuse = "new"
    unproved: dict[str, float] = field(default_factory=dict)
    expected: dict[str, Expected] = field(default_factory=dict)

    @property
    def timed(self) -> dict[str, float]:
        """Seconds of every tile screened, proved or not."""
        return {**self.unproved, **self.seconds}

    def rescale(self, factor: float) -> None:
        """Bring everything measured onto the scale of a later screening."""
        self.seconds = {t: s * factor for t, s in self.seconds.items()}
        self.unproved = {t: s * factor for t, s in self.unproved.items()}

    @property
    def best(self) -> tuple[str, float] | None:
        """The fastest screened tile that is proved, and its seconds."""
        return min(self.seconds.items(), key=lambda each: (each[1], each[0]), default=None)
