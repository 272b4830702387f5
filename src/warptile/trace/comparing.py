"""Two traces beside each other, by what kernels are for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from warptile.trace.kinds import kind_of_kernel
from warptile.trace.reading import KernelTime
from warptile.trace.spans import Trace


@dataclass(frozen=True)
class Pair:
    """One kind of kernel. ours, theirs: seconds; each side's kernels, the longest first."""

    kind: str
    ours: float
    theirs: float
    our_kernels: tuple[KernelTime, ...]
    their_kernels: tuple[KernelTime, ...]

    @property
    def gap(self) -> float:
        """Seconds that we take longer."""
        return self.ours - self.theirs


@dataclass(frozen=True)
class Comparison:
    """Pairs, the largest gap to our loss first. source: what wrote the other trace."""

    source: str
    pairs: tuple[Pair, ...]

    @property
    def gap(self) -> float:
        """Seconds that we take longer in all."""
        return sum(pair.gap for pair in self.pairs)

    def where(self) -> str:
        """The gap in one line."""
        ours, theirs = sum(p.ours for p in self.pairs), sum(p.theirs for p in self.pairs)
        total = f"{ours * 1e3:.3f} ms here, {theirs * 1e3:.3f} ms there"
        worst = self.pairs[0]
        if worst.gap <= 0:
            return f"{total}: no kind of kernel is slower here"
        if self.gap <= 0:
            return f"{total}: faster in all; {worst.kind} is {worst.gap * 1e3:.3f} ms slower"
        return f"{total}: {worst.gap / sum(max(0.0, p.gap) for p in self.pairs):.0%} of what is lost is {worst.kind}"


def kernels_of(trace: Trace, phase: str | None = None) -> list[KernelTime]:
    """A trace's kernels on the device and operators on the host; phase: of one only."""
    return [
        KernelTime(span.kernel, span.calls, span.seconds, bool(span.matmul))
        for span in trace.spans
        if phase in (None, span.phase)
    ]


def compare(ours: Iterable[KernelTime], source: str, theirs: Iterable[KernelTime]) -> Comparison:
    """Join two lists of kernels by kind."""
    sides: tuple[dict[str, dict[str, KernelTime]], ...] = ({}, {})
    for side, kernels in zip(sides, (ours, theirs), strict=True):
        for each in kernels:
            kind = side.setdefault(kind_of_kernel(each.kernel, each.quantized), {})
            have = kind.get(each.kernel)
            kind[each.kernel] = KernelTime(
                each.kernel,
                each.calls + (have.calls if have else 0),
                each.seconds + (have.seconds if have else 0.0),
                each.quantized,
            )
    pairs = []
    for name in {**sides[0], **sides[1]}:
        own, other = (tuple(sorted(side.get(name, {}).values(), key=lambda kernel: -kernel.seconds)) for side in sides)
        pairs.append(Pair(name, sum(k.seconds for k in own), sum(k.seconds for k in other), own, other))
    return Comparison(source, tuple(sorted(pairs, key=lambda pair: -pair.gap)))
