"""Every planted fault is caught, by the check that is meant to catch it, and its sound twin is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mutants.planting import DEVICES, PITFALLS, Lab, Mutant, Spoken, mutants, stems
from warptile.proof import ReferenceCache

ALL = mutants()


@pytest.fixture(scope="module")
def cache() -> ReferenceCache:
    return ReferenceCache()


@pytest.fixture(scope="module")
def remembered() -> dict[object, object]:
    return {}


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:overflow")
@pytest.mark.parametrize("mutant", ALL, ids=lambda m: m.name)
def test_a_planted_fault_is_caught_for_the_right_reason(
    mutant: Mutant,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    cache: ReferenceCache,
    remembered: dict[object, object],
    record_property: Callable[[str, object], None],
) -> None:
    lab = Lab(request.getfixturevalue, cache, tmp_path, remembered)
    found = Spoken("", "the experiment itself broke")
    try:
        found = mutant.run(lab, True)
    finally:
        record_property("mutant", (mutant.pitfall, mutant.name, mutant.check, found.check))
    assert found.check, f"survived: {mutant.plants}"
    assert found.check == mutant.check, f"caught by {found.check!r}: {found.detail}"
    twin = mutant.run(lab, False)
    assert not twin.check, f"the twin without the fault is rejected too, by {twin.check!r}: {twin.detail}"


def test_every_pitfall_is_planted_and_described() -> None:
    assert {m.pitfall for m in ALL} - {0} == set(PITFALLS)
    assert len({m.name for m in ALL}) == len(ALL)
    assert all(m.on in DEVICES and m.plants and m.check for m in ALL)
    told = (Path(__file__).parents[2] / "docs" / "proof.md").read_text("utf-8")
    assert [stem for stem in stems() if f"`{stem}`" not in told] == []
