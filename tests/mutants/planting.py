"""What a planted fault is, how it is planted, and what the shipped code may say of it."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from warptile.contracts import Kernel, Launch, Limits, Problem, Runtime, Source, Tile, Verdict
from warptile.places import Places
from warptile.proof import ReferenceCache, prove

PITFALLS = range(1, 25)
DEVICES = ("made-up", "lavapipe", "interpreter", "paper")
HELPERS = {"planting", "summary", "made_up", "direct", "watching", "faulty_triton"}

T = TypeVar("T")


@dataclass(frozen=True)
class Spoken:
    """The check that spoke, "" where none did, and what it said."""

    check: str
    detail: str = ""


@dataclass(frozen=True)
class Lab:
    """Where mutants run. fixture: pytest's, by name. cache: references shared by all. folder: a fresh one."""

    fixture: Callable[[str], Any]
    cache: ReferenceCache
    folder: Path
    remembered: dict[object, object]

    @property
    def device(self) -> Runtime:
        """The software Vulkan device."""
        return cast(Runtime, self.fixture("device"))

    @property
    def interpreter(self) -> Runtime:
        """Triton's interpreter; without torch the test is skipped."""
        return cast(Runtime, self.fixture("interpreter"))

    @property
    def places(self) -> Places:
        """Private folders, shared by the session."""
        return cast(Places, self.fixture("places"))

    def once(self, key: object, make: Callable[[], T]) -> T:
        """What `make` returned for this key the first time in this session."""
        if key not in self.remembered:
            self.remembered[key] = make()
        return cast(T, self.remembered[key])


@dataclass(frozen=True)
class Mutant:
    """A planted fault.

    pitfall: its number in docs/proof.md, 0 for one found on the way. plants: the fault, in a line. check: the one that
    must speak. on: what it runs on. run(lab, planted): the whole experiment through shipped code, with the fault or
    without it; what spoke. name: of the fault, by default its file's.
    """

    pitfall: int
    plants: str
    check: str
    on: str
    run: Callable[[Lab, bool], Spoken]
    name: str = ""


def spoken(verdict: Verdict) -> Spoken:
    """What a proof said."""
    return Spoken(verdict.failed, verdict.detail)


def stems() -> list[str]:
    """The files of this folder that hold mutants, by name."""
    every = sorted(path.stem for path in Path(__file__).parent.glob("*.py"))
    return [stem for stem in every if stem not in HELPERS and not stem.startswith(("test_", "conftest", "__"))]


def mutants() -> list[Mutant]:
    """Every mutant of this folder, by file, then as they stand there."""
    found: list[Mutant] = []
    for stem in stems():
        module = importlib.import_module(f"tests.mutants.{stem}")
        own: Sequence[Mutant] = getattr(module, "MUTANTS", None) or (module.MUTANT,)
        found += [m if m.name else dataclasses.replace(m, name=stem) for m in own]
    return found


class Wrapped:
    """A kernel with another source or other launches. source, launch: functions of what the kernel itself gives."""

    def __init__(
        self,
        kernel: Kernel,
        source: Callable[[Source], Source] = lambda source: source,
        launch: Callable[[tuple[Launch, ...]], tuple[Launch, ...]] = lambda launches: launches,
    ) -> None:
        self._kernel = kernel
        self._source = source
        self._launch = launch

    def __getattr__(self, name: str) -> object:
        return getattr(self._kernel, name)

    def source(self, tile: Tile, problem: Problem, limits: Limits) -> Source:
        return self._source(self._kernel.source(tile, problem, limits))

    def launch(self, *arguments: Any) -> tuple[Launch, ...]:
        return self._launch(self._kernel.launch(*arguments))


def planted(kernel: Kernel, *changes: tuple[str, str]) -> Kernel:
    """The kernel with pieces of its source text (or its helpers') replaced, each of which must occur."""

    def changed(source: Source) -> Source:
        missing = [before for before, _ in changes if before not in _whole_text(source)]
        assert not missing, f"the planted fault no longer fits the source: {missing}"
        return _replaced(source, changes)

    return cast(Kernel, Wrapped(kernel, source=changed))


def launched_otherwise(kernel: Kernel, change: Callable[[Launch], Launch]) -> Kernel:
    """The kernel with every launch changed."""
    return cast(Kernel, Wrapped(kernel, launch=lambda launches: tuple(change(one) for one in launches)))


def prove_on(
    lab: Lab, runtime: Runtime, kernel: Kernel, tile: Tile, problem: Problem, level: str = "quick", **more: Any
) -> Spoken:
    """What the shipped proof says."""
    return spoken(prove(runtime, kernel, tile, problem, level, cache=lab.cache, **more))


def sound(lab: Lab, runtime: Runtime, kernel: Kernel, tile: Tile, problem: Problem, level: str = "quick") -> Spoken:
    """The same of a kernel as it ships, once a session."""
    return lab.once(
        (runtime.name, tile.text(), problem, level), lambda: prove_on(lab, runtime, kernel, tile, problem, level)
    )


def _whole_text(source: Source) -> str:
    return "\n".join([source.text, *(_whole_text(helper) for helper in source.helpers)])


def _replaced(source: Source, changes: Sequence[tuple[str, str]]) -> Source:
    text = source.text
    for before, after in changes:
        text = text.replace(before, after)
    return dataclasses.replace(source, text=text, helpers=tuple(_replaced(h, changes) for h in source.helpers))
