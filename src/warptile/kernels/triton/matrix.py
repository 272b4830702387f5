"""What the matrix units of a device can do, by its architecture, for rules and prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from warptile.contracts import Limits


@dataclass(frozen=True)
class Architecture:
    """name: "sm_90", "gfx1200". matrix: fp16 matrix FLOP/s over vector fp32 FLOP/s; int8: the same for int8.

    least_n: fewest weight rows a matrix instruction of a whole warp group takes. registers: most a thread.
    asynchronous: whether a matrix instruction runs on after it was issued, its operands held until it ends.
    fragment_copies: how often a wave holds a matrix operand.
    """

    name: str
    matrix: float
    int8: float
    least_n: int = 16
    registers: int = 255
    asynchronous: bool = False
    fragment_copies: int = 1


# Ratios from the vendors' data sheets: dense, fp32 accumulation. GA100 312/19.5, GA102-class 1:2 of GA100's ratio for
# consumer cards, GH100 989/67, GB202 as AD102; RDNA3 and RDNA4 by their wave matrix rates, CDNA3 1307/163.
_KNOWN = (
    Architecture("sm_80", 16.0, 32.0),
    Architecture("sm_86", 2.0, 8.0),
    Architecture("sm_89", 2.0, 8.0),
    Architecture("sm_90", 14.8, 29.5, least_n=64, asynchronous=True),
    Architecture("sm_120", 2.0, 8.0),
    Architecture("gfx1100", 2.0, 2.0, registers=256, fragment_copies=2),
    Architecture("gfx1200", 4.0, 8.0, registers=256),
    Architecture("gfx942", 8.0, 16.0, registers=512),
    Architecture("interpreter", 1.0, 1.0),
)
ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType({a.name: a for a in _KNOWN})


def architecture(limits: Limits) -> Architecture:
    """The device's architecture, named among its features; one like sm_80 in ratios where it is not known."""
    for feature in sorted(limits.features):
        if feature in ARCHITECTURES:
            return ARCHITECTURES[feature]
    return Architecture("unknown", 4.0, 8.0)


def is_nvidia(limits: Limits) -> bool:
    """Whether PTX instructions can be used."""
    return architecture(limits).name.startswith("sm_")
