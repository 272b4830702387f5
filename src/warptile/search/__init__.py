"""Which candidate next: every kernel's tiles on one problem, valid ones in order of price."""

from warptile.search.neighbours import neighbours
from warptile.search.rank import Candidate, Ranking, rank, rank_all

__all__ = ["Candidate", "Ranking", "neighbours", "rank", "rank_all"]
