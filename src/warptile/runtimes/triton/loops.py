"""Which backward branches of machine code are loops.

A loop is entered at its first instruction alone, which every way to its backward branch then passes. Assemblers also
move what is seldom taken (a wait that did not succeed) behind the rest and branch back from there: no loop, though all
that lies between would look like one.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

# What control never passes: SASS without a predicate, and AMD's.
_ENDS = re.compile(r"(?:BRA 0x|BRX|JMP|JMX|EXIT|RET)|s_(?:branch|endpgm|setpc)")
# Branches by a table.
_TABLES = re.compile(r"BRX|JMX|s_setpc")


@dataclass(frozen=True)
class Instruction:
    """One line of machine code: where it is, its text, and where it may branch to (None: nowhere)."""

    at: int
    text: str
    target: int | None = None


def loops_of(code: Sequence[Instruction]) -> list[tuple[int, int]]:
    """(first, last) addresses of the loops, in order of their branches; a branch to itself (the code's end) is none.

    Where a branch may go by a table is not known: code that nothing else leads to is taken to be led to by all of them.
    What is led to otherwise as well would rather be called a loop than not.
    """
    places = [i.at for i in code]

    def place(target: int) -> int:
        return bisect_left(places, target)

    led = [i for i in code if i.target is not None and place(i.target) < len(code)]
    ends = {n + 1 for n, i in enumerate(code) if i.target is not None or _ENDS.match(i.text)}
    starts = sorted({0, *(place(i.target) for i in led if i.target is not None), *(n for n in ends if n < len(code))})
    leads: list[set[int]] = [set() for _ in starts]
    tables: set[int] = set()
    for block, (start, end) in enumerate(pairwise([*starts, len(code)])):
        last = code[end - 1] if end > start else None
        if last is None:
            continue
        if _TABLES.match(last.text):
            tables.add(block)
        if last.target is not None and place(last.target) < len(code):
            leads[bisect_left(starts, place(last.target))].add(block)
        if end < len(code) and not _ENDS.match(last.text):
            leads[block + 1].add(block)
    passed = _passed([before or (tables if block else set()) for block, before in enumerate(leads)])

    def is_loop(branch: Instruction) -> bool:
        first, last = bisect_left(starts, place(branch.target or 0)), bisect_left(starts, place(branch.at) + 1) - 1
        return bool(passed[last] >> first & 1)

    return [(i.target, i.at) for i in led if i.target is not None and i.target < i.at and is_loop(i)]


def _passed(leads: Sequence[set[int]]) -> list[int]:
    """For each block those that every way to it passes, itself among them, as bits; leads: which blocks lead to it."""
    begins = _begins(leads)
    everything = (1 << len(leads)) - 1
    found = [1 << block if block in begins else everything for block in range(len(leads))]
    changed = True
    while changed:
        changed = False
        for block, before in enumerate(leads):
            if block not in begins:
                now = reduce(int.__and__, (found[b] for b in before)) | 1 << block
                changed = changed or now != found[block]
                found[block] = now
    return found


def _begins(leads: Sequence[set[int]]) -> set[int]:
    """Where ways begin: the first block, blocks that none leads to, and the first of any that these do not reach."""
    after: list[list[int]] = [[] for _ in leads]
    for block, before in enumerate(leads):
        for b in before:
            after[b].append(block)
    begins: set[int] = set()
    reached: set[int] = set()
    for begin in (0, *(block for block, before in enumerate(leads) if not before), *range(len(leads))):
        if begin in reached:
            continue
        begins.add(begin)
        waiting = [begin]
        while waiting:
            block = waiting.pop()
            if block not in reached:
                reached.add(block)
                waiting += after[block]
    return begins
