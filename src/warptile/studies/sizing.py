"""Which of a study's sizes a device takes: the first at which the most arms fit."""

from __future__ import annotations

from dataclasses import dataclass

from warptile import kernels
from warptile.contracts import BrokenRule, Kernel, Limits, Tile, UnusableInput
from warptile.studies.study import Study, StudyArm, StudyProblem


@dataclass(frozen=True)
class Fit:
    """One arm at one size on one problem of a device. broken: the rules that refuse it."""

    arm: str
    problem: StudyProblem
    size: int
    tile: str
    broken: tuple[BrokenRule, ...]

    @property
    def parsed(self) -> tuple[Kernel, Tile]:
        """The tile's kernel and the tile."""
        return kernels.parse_tile(self.tile)


def fit(arm: StudyArm, problem: StudyProblem, size: int, limits: Limits) -> Fit | None:
    """Whether an arm's size is valid for a problem on a device; None where the arm does not run the problem."""
    chosen = arm.sizes[size]
    text = chosen.tiles.get(problem.name, "")
    if not text:
        return None
    kernel, tile = kernels.parse_tile(text)
    if kernel.runtime != limits.runtime:
        broken = [BrokenRule("kernel and device are of one runtime", f"{kernel.name}, device of {limits.runtime}")]
    else:
        broken = kernel.broken_rules(tile, problem.on(limits), limits)
    return Fit(arm.name, problem, size, text, tuple(broken))


def fits(study: Study, size: int, limits: Limits) -> list[Fit]:
    """Every arm on every problem that it runs, at one size."""
    found = (fit(arm, problem, size, limits) for problem in study.problems for arm in study.arms)
    return [each for each in found if each is not None]


def choose_size(study: Study, limits: Limits) -> int:
    """The first size at which the control and the most arms are valid on every problem they run.

    Arms that are expected to be refused do not count.
    Raises UnusableInput where the control, or every other arm, is refused at each size; names the first rule.
    """
    best, most = -1, 1
    for size in range(len(study.sizes)):
        refused = {each.arm for each in fits(study, size, limits) if each.broken}
        valid = sum(arm.name not in refused for arm in study.arms if arm.expect != "refused")
        if study.control not in refused and valid > most:
            best, most = size, valid
    if best < 0:
        everything = [each for size in range(len(study.sizes)) for each in fits(study, size, limits)]
        first = next((each for each in everything if each.broken), None)
        if first is None:
            raise UnusableInput(f"study {study.name}: its only arm is its control: there is nothing to compare")
        raise UnusableInput(
            f"study {study.name}: no arm fits {limits.name} at any size; {first.arm} on {first.problem.name}:"
            f" {first.broken[0].text()}"
        )
    return best
