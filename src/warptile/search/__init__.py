"""Which candidate next: every kernel's valid tiles on one problem, by price, or by price corrected by measurements."""

from warptile.search.correction import Correction, Estimate, Observation, Scales
from warptile.search.improvement import Aim, chosen, improvement
from warptile.search.neighbours import neighbours
from warptile.search.points import Point, Points
from warptile.search.rank import Candidate, Ranking, rank, rank_all

__all__ = [
    "Aim",
    "Candidate",
    "Correction",
    "Estimate",
    "Observation",
    "Point",
    "Points",
    "Ranking",
    "Scales",
    "chosen",
    "improvement",
    "neighbours",
    "rank",
    "rank_all",
]
