"""Is it faster: screening, play-offs, paired races with an A/A floor, and decisions."""

from warptile.race.bench import Bench, close_bench, open_bench
from warptile.race.decision import decide
from warptile.race.play_off import play_off
from warptile.race.racing import race
from warptile.race.screening import Screened, Screening, screen
from warptile.race.terms import Terms

__all__ = [
    "Bench",
    "Screened",
    "Screening",
    "Terms",
    "close_bench",
    "decide",
    "open_bench",
    "play_off",
    "race",
    "screen",
]
