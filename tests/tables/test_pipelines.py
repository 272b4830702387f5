"""A kernel's pipelines are data of the table: read back as written, served by their thresholds, refused when amiss."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from warptile.contracts import Identity, UnusableInput
from warptile.journal import Journal, entries, to_json
from warptile.tables import Pipeline, PipelineKey, Pipelines, Point, Table, Thresholds, Validity, rebuild_from

HERE = Identity(device="NVIDIA H200", driver="580", compiler="glslang 13", runtime="vulkan")
KEY = PipelineKey("vulkan.mul_mmq", "Q4_K", "b4.k6min.256")
VALID = Validity(HERE.driver, HERE.compiler, "aa", 1)


def pipeline(size: str, m: int, tile: str) -> Pipeline:
    point = Point(m, tile, "vulkan.s:n=9", 1e-3, 2e-3, 2.0, 1.9, 2.1, 0.02, "accept", "beyond the floor", VALID)
    return Pipeline(size, 4096, 4096, point)


SMALL, LARGE = pipeline("small", 32, "vulkan.a:n=1"), pipeline("large", 256, "vulkan.b:n=2")
BOTH = Pipelines(KEY, Thresholds(16, 8, 96, 64)).with_pipeline(LARGE).with_pipeline(SMALL)


@pytest.mark.parametrize(
    ("m", "n", "size"),
    [(16, 4096, "small"), (17, 4096, "medium"), (512, 8, "small"), (512, 9, "medium"), (96, 65, "medium"),
     (97, 64, "medium"), (97, 65, "large")],
)  # fmt: skip
def test_a_threshold_is_the_last_of_its_size(m: int, n: int, size: str) -> None:
    assert BOTH.thresholds.size(m, n) == size


def test_written_and_read_again_beside_what_another_wrote(tmp_path: Path) -> None:
    first, second = Table.load(tmp_path, HERE), Table.load(tmp_path, HERE)
    other = replace(BOTH, key=replace(KEY, format="Q6_K"))
    first.put_pipelines(BOTH)
    second.put_pipelines(other)
    first.save()
    second.save()
    assert Table.load(tmp_path, HERE).pipelines() == [BOTH, other]
    assert [p.size for p in BOTH.sizes] == ["small", "large"]


def test_a_table_without_pipelines_has_no_entry_for_them(tmp_path: Path) -> None:
    assert "pipelines" not in json.loads(Table.load(tmp_path, HERE).save().read_text())


@pytest.mark.parametrize(
    "amiss",
    [
        replace(BOTH, sizes=(SMALL, SMALL)),
        replace(BOTH, sizes=(replace(SMALL, size="huge"),)),
        replace(BOTH, thresholds=Thresholds(64, 8, 32, 64)),
    ],
)
def test_what_cannot_be_served_is_not_kept(tmp_path: Path, amiss: Pipelines) -> None:
    table = Table.load(tmp_path, HERE)
    with pytest.raises(ValueError, match="amiss"):
        table.put_pipelines(amiss)
    table.put_pipelines(BOTH)
    path = table.save()
    content = json.loads(path.read_text())
    content["pipelines"] = [to_json(amiss)]
    path.write_text(json.dumps(content))
    with pytest.raises(UnusableInput, match="corrupt"):
        Table.load(tmp_path, HERE)


def test_rebuilt_from_the_journal(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.append(entries.run("pipelines", HERE, pipelines=to_json(replace(BOTH, sizes=()))))
    journal.append(entries.run("pipelines", HERE, pipelines=to_json(BOTH)))
    journal.append(
        entries.run("pipelines", replace(HERE, device="another"), pipelines=to_json(replace(BOTH, sizes=())))
    )
    assert rebuild_from(journal, tmp_path, HERE).pipelines() == [BOTH]
    journal.append(entries.run("pipelines forgotten", HERE, key=to_json(KEY)))
    assert rebuild_from(journal, tmp_path, HERE).pipelines() == []


def test_what_was_forgotten_stays_so_when_saved(tmp_path: Path) -> None:
    table = Table.load(tmp_path, HERE)
    table.put_pipelines(BOTH)
    table.save()
    again = Table.load(tmp_path, HERE)
    assert again.forget_pipelines(KEY)
    assert not again.forget_pipelines(KEY)
    again.save()
    assert Table.load(tmp_path, HERE).pipelines() == []
