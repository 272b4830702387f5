"""Evidence: broken rules, verdicts of the proof, races, decisions."""

from __future__ import annotations

from dataclasses import dataclass, field

from warptile.contracts.problem import Problem


@dataclass(frozen=True)
class BrokenRule:
    """A rule a tile breaks: the rule in words or symbols, the numbers that break it.

    well_formed: True where the tile only exceeds the device (DoesNotFit); False where it is invalid anywhere.
    """

    rule: str
    numbers: str
    well_formed: bool = False

    def text(self) -> str:
        """`rule (numbers)`."""
        return f"{self.rule} ({self.numbers})"


@dataclass(frozen=True)
class Arithmetic:
    """What the per-element bound needs to know of a kernel's tile.

    weights, activations: type each operand has when it is multiplied ("fp32", "fp16"; "fp16 scales": whole-number codes
    whose scale and minimum were rounded to fp16), or the block format it was quantized to ("q8_1"). accumulator:
    "fp32", "fp16" or "int32" (fp32 across blocks). depth: the longest chain of additions one accumulator takes part in,
    before partial sums are combined; parts: how many partial sums are combined. special: NaN and Inf come out as such,
    and activations up to 2^15 are within its range; False where sums are clamped, or a block's sum is kept in fp16.
    """

    weights: str
    activations: str
    accumulator: str
    depth: int
    parts: int = 1
    special: bool = True

    @property
    def quantizes_activations(self) -> bool:
        """Whether activations are cut to a block format's few bits before they are multiplied."""
        return self.activations.startswith("q8_")


@dataclass(frozen=True)
class FirstWrong:
    """The first output element that failed: y[row, column] got, want, and the bound on |got - want|."""

    row: int
    column: int
    got: float
    want: float
    bound: float


@dataclass(frozen=True)
class Verdict:
    """What the proof says of one candidate.

    checks: names of the checks that ran; failed: the one that spoke ("" when right).
    shapes: (m, n, k) of every shape reached. nmse: worst over shapes. worst_ratio: largest
    |got - want| / bound over all elements (must be <= 1). binary: 32-bit id the device itself wrote.
    seeds: what to repeat it with.
    """

    right: bool
    checks: tuple[str, ...]
    failed: str = ""
    detail: str = ""
    first_wrong: FirstWrong | None = None
    shapes: tuple[tuple[int, int, int], ...] = ()
    nmse: float = 0.0
    worst_ratio: float = 0.0
    binary: int = 0
    seeds: tuple[int, ...] = ()
    level: str = "quick"
    version: int = 1


@dataclass(frozen=True)
class Arm:
    """One contender: a kernel's tile, by its text form, on a problem."""

    tile: str
    problem: Problem

    @property
    def kernel(self) -> str:
        """The kernel's full name."""
        return self.tile.split(":", 1)[0]


@dataclass(frozen=True)
class Race:
    """A challenger against the incumbent, paired and interleaved.

    ratio: median over rounds of incumbent seconds / challenger seconds (above 1: the challenger is
    faster), with an interval [low, high] of order statistics; all looks taken at the race hold together at
    `confidence`. floor: how far from 1 the ratio of the incumbent to itself, raced in the same rounds (A/A), came out,
    max(ratio, 1 / ratio) - 1. seconds: medians.
    copies: weight copies rotated over; rotated_bytes: their bytes together; cache_bytes: what they exceed.
    """

    incumbent: Arm
    challenger: Arm
    ratio: float
    low: float
    high: float
    confidence: float
    floor: float
    incumbent_seconds: float
    challenger_seconds: float
    rounds: int
    copies: int
    rotated_bytes: int
    cache_bytes: int
    incumbent_samples: tuple[float, ...] = field(default=(), repr=False)
    challenger_samples: tuple[float, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Decision:
    """accept, reject or undecided, and why, in one line."""

    outcome: str
    reason: str
