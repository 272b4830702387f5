"""What instrumented launches leave in memory: the layout of headers, reports and counts, and how they are read.

One buffer holds everything of one run: a header of 64 words a launch, the reports, a count for each element that is to
be written once, and each launch's shadow of shared memory. A launch binds the buffer from its own header on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warptile.contracts.errors import DoesNotFit
from warptile.contracts.instruments import FAULT_KINDS, Fault, Observation
from warptile.runtimes.vulkan.instrument.checked import Site

HEADER_WORDS = 64
CAPACITY = 256
REPORT_WORDS = 8
_REPORTS_AT, _CAPACITY_AT, _SHADOW_AT, _STARTED, _FINISHED, _RAN, _INVOCATIONS, _SLOT_AT = range(8)
_ORDER_AT = 8
_EXTENTS_AT, _ONCE_AT, _ONCE_SHIFT_AT = 16, 32, 48
_CUT = 63
MOST_BINDINGS = _CUT - _ONCE_SHIFT_AT
_KINDS = ("", "outside", "race", "race", "race", "uninitialised", "once", "outside", "barrier")
_READ_WRITE, _INNER = 3, 7


@dataclass(frozen=True)
class Watched:
    """What the report needs to know of one launch.

    extents: bytes of each binding, the executed ids last. once: {binding: the number of its counts}. grid: workgroups
    along x, y, z that have work, of those `dispatched`. lines: of the translation unit. order: of a delayed build, its
    header words from the grid's on; spins, warp: the longest pause and a warp's invocations.
    """

    identity: int
    sites: tuple[Site, ...]
    shadow_words: int
    invocations: int
    extents: tuple[int, ...]
    once: Mapping[int, int]
    grid: tuple[int, int, int]
    dispatched: tuple[int, int, int]
    lines: Sequence[str]
    order: tuple[int, ...] = ()
    spins: int = 0
    warp: int = 1

    @property
    def workgroups(self) -> int:
        """Of the whole launch."""
        return self.grid[0] * self.grid[1] * self.grid[2]


@dataclass(frozen=True)
class Counted:
    """A buffer whose elements of `unit` bytes are to be written once."""

    nbytes: int
    unit: int


class Notes:
    """The words of one run of launches."""

    def __init__(self, launches: Sequence[Watched], counted: Sequence[Counted], most_bytes: int) -> None:
        self._launches = launches
        self._counted = counted
        self._reports = HEADER_WORDS * len(launches)
        at = self._reports + REPORT_WORDS * (CAPACITY + 1)
        self._counts = []
        for each in counted:
            self._counts.append(at)
            at += -(-each.nbytes // each.unit)
        self._read_words = at
        shadows = []
        for launch in launches:
            shadows.append(at)
            at += launch.shadow_words * launch.workgroups
        self._words = at
        if 4 * at > most_bytes:
            raise DoesNotFit(
                "an instrumented run's notes <= the device's storage-buffer range", f"{4 * at} > {most_bytes}"
            )
        self._shadows = shadows

    def initial(self) -> NDArray[np.uint32]:
        """All words as they are before the first launch."""
        words = np.zeros(self._words, np.uint32)
        for slot, (launch, shadow) in enumerate(zip(self._launches, self._shadows, strict=True)):
            start = slot * HEADER_WORDS
            header = words[start : start + HEADER_WORDS]
            header[_REPORTS_AT] = self._reports - start
            header[_CAPACITY_AT] = CAPACITY
            header[_SHADOW_AT] = shadow - start
            header[_SLOT_AT] = slot
            header[_ORDER_AT : _ORDER_AT + len(launch.order)] = launch.order
            header[_EXTENTS_AT : _EXTENTS_AT + len(launch.extents)] = launch.extents
            if launch.order:
                # A delayed build counts nothing: the same words say how long and how wide its pauses are.
                header[_ONCE_AT], header[_ONCE_AT + 1] = launch.spins, launch.warp
                continue
            for binding, number in launch.once.items():
                header[_ONCE_AT + binding] = self._counts[number] - start
                header[_ONCE_SHIFT_AT + binding] = self._counted[number].unit.bit_length() - 1
        return words

    @property
    def read_bytes(self) -> int:
        """How much of it `observation` reads."""
        return 4 * self._read_words

    def observation(self, words: NDArray[np.uint32], checked: bool) -> Observation:
        """What the launches left. checked: whether elements were counted.

        Raises DoesNotFit where the device's driver ended loops before their end: what it says is no fault then.
        """
        if any(words[slot * HEADER_WORDS + _CUT] for slot in range(len(self._launches))):
            raise DoesNotFit("an instrumented kernel's loops run to their end", "this driver ends long ones early")
        faults = [f for slot, launch in enumerate(self._launches) if (f := self._launched(words, slot, launch))]
        found = int(words[self._reports])
        first = self._reports + REPORT_WORDS
        for number in range(min(found, CAPACITY)):
            at = first + number * REPORT_WORDS
            faults.append(self._fault([int(w) for w in words[at : at + REPORT_WORDS]]))
        if checked:
            for each, at in zip(self._counted, self._counts, strict=True):
                left = np.flatnonzero(words[at : at + -(-each.nbytes // each.unit)] == 0)
                if left.size:
                    index = int(left[0])
                    text = f"{left.size} elements of the output were never written, the first is {index}"
                    faults.append(Fault("once", text, index=index, extent=each.nbytes))
        different: dict[tuple[str, int], Fault] = {}
        for fault in faults:
            different.setdefault((fault.kind, fault.line), fault)
        ordered = sorted(different.values(), key=lambda f: FAULT_KINDS.index(f.kind))
        return Observation(tuple(ordered), max(found, len(faults)))

    def _launched(self, words: NDArray[np.uint32], slot: int, launch: Watched) -> Fault | None:
        """A fault where not every workgroup of the launch's own binary began and ended."""
        header = words[slot * HEADER_WORDS : (slot + 1) * HEADER_WORDS]
        began, ended, ran, invocations = (int(header[at]) for at in (_STARTED, _FINISHED, _RAN, _INVOCATIONS))
        wanted = launch.workgroups
        if began == ended == wanted and ran == launch.identity and invocations == wanted * launch.invocations:
            return None
        if not began:
            return Fault("launch", f"launch {slot} did not run: no workgroup began") if wanted else None
        if ran != launch.identity:
            return Fault("launch", f"launch {slot} ran binary {ran:08x}, not {launch.identity:08x}")
        return Fault(
            "launch",
            f"launch {slot}: of {wanted} workgroups {began} began and {ended} ended, {invocations} invocations of"
            f" {wanted * launch.invocations}",
        )

    def _fault(self, record: Sequence[int]) -> Fault:
        kind, number, workgroup, invocation, index, other, other_site, slot = record
        launch = self._launches[slot]
        gx, gy, _ = launch.grid
        at = (workgroup % gx, workgroup // gx % gy, workgroup // gx // gy)
        place = f"invocation {invocation} of workgroup {at} of launch {slot}"
        if _KINDS[kind] == "barrier":
            text = f"{place} ended after {index} workgroup barriers, another after {other}"
            return Fault("barrier", text, 0, at, invocation)
        site = launch.sites[number - 1]
        doing = {"read": "reads", "write": "writes", "atomic": "updates"}[site.what]
        name = f"{site.name}[{index}]"
        extent = 0
        if _KINDS[kind] == "outside":
            extent = other
            inner = f"index {index} into an array of {other} in {site.name}"
            whole = f"{name} of {site.per} bytes an element, the buffer has {other} bytes"
            what = f"{doing} outside: {inner if kind == _INNER else whole}"
        elif _KINDS[kind] == "once":
            by = (other & 0x0FFFFFFF) - 1
            who = f"invocation {by & 1023} of workgroup number {by >> 10} of launch {(other >> 28) - 1}"
            what = f"writes element {index} of {site.name} a second time, after {who}"
        else:
            element, part = divmod(index - site.first, site.per)
            index = element
            name = f"{site.name}[{element}]" + (f" (component {part})" if site.per > 1 else "")
            if _KINDS[kind] == "uninitialised":
                what = f"{doing} {name} of shared memory, which nobody has written"
            else:
                did = "read" if kind == _READ_WRITE else "wrote"
                where = _line(launch, launch.sites[other_site - 1].line) if other_site else "somewhere"
                what = f"{doing} {name} of shared memory, which invocation {other} {did} in {where}, no barrier between"
        text = f"{_line(launch, site.line)}: {place} {what}"
        return Fault(_KINDS[kind], text, site.line, at, invocation, index, extent)


def _line(launch: Watched, number: int) -> str:
    if not 0 < number <= len(launch.lines):
        return f"line {number}"
    return f"line {number} `{' '.join(launch.lines[number - 1].split())[:100]}`"
