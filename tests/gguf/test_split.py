"""Split models: every part is found, whichever was named, and held against the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.gguf_bytes import RawTensor, entry, gguf_bytes, random_bytes

from warptile.contracts.errors import UnusableInput
from warptile.gguf import open_gguf


def part(index: int, *, count: int = 3, number: int | None = None, total: int = 6, names: str = "") -> bytes:
    tensors = [
        RawTensor(f"{names or index}.{j}.weight", (32, j + 1), 2, random_bytes(18 * (j + 1), 10 * index + j))
        for j in range(2)
    ]
    entries = [
        entry("split.no", "u16", index if number is None else number),
        entry("split.count", "u16", count),
        entry("split.tensors.count", "i32", total),
    ]
    if index == 0:
        entries.insert(0, entry("general.architecture", "str", "llama"))
    return gguf_bytes(entries, tensors)


def paths(folder: Path, count: int = 3) -> list[Path]:
    return [folder / f"m-{i + 1:05d}-of-{count:05d}.gguf" for i in range(count)]


@pytest.fixture
def split(tmp_path: Path) -> list[Path]:
    found = paths(tmp_path)
    for index, path in enumerate(found):
        path.write_bytes(part(index))
    return found


@pytest.mark.parametrize("opened", [0, 1, 2])
def test_any_part_opens_the_whole_model(split: list[Path], opened: int) -> None:
    model = open_gguf(split[opened])
    assert model.parts == tuple(split)
    assert model.metadata["general.architecture"] == "llama"
    assert list(model.tensors) == [f"{i}.{j}.weight" for i in range(3) for j in range(2)]
    for i in range(3):
        assert model.tensors[f"{i}.1.weight"].part == i
        assert model.blocks(f"{i}.1.weight").tobytes() == random_bytes(36, 10 * i + 1)


def test_a_missing_part_is_named(split: list[Path]) -> None:
    split[1].unlink()
    with pytest.raises(UnusableInput, match=r"m-00002-of-00003\.gguf: missing, part 2 of the 3"):
        open_gguf(split[0])


def test_a_damaged_part_is_named(split: list[Path]) -> None:
    split[2].write_bytes(split[2].read_bytes()[:-40])
    with pytest.raises(UnusableInput, match=r"m-00003-of-00003\.gguf: byte \d+: tensor 2\.1\.weight ends at"):
        open_gguf(split[0])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (part(1, number=2), r"00002-of-00003\.gguf: split\.no is 2, where 1 was expected"),
        (part(1, count=4), r"00002-of-00003\.gguf: split\.count is 4, where 3 was expected"),
        (part(1, total=9), r"00002-of-00003\.gguf: split\.tensors\.count is 9, where 6 was expected"),
        (part(1, names="0"), r"00002-of-00003\.gguf: tensor 0\.0\.weight is already in .*00001-of-00003\.gguf"),
        (gguf_bytes(), r"00002-of-00003\.gguf: split\.count is None, where 3 was expected"),
        (b"GGUF", r"00002-of-00003\.gguf: byte 4: the version needs 4 bytes, 0 are left"),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(split: list[Path], bad: bytes, message: str) -> None:
    split[1].write_bytes(bad)
    with pytest.raises(UnusableInput, match=message):
        open_gguf(split[0])


def test_a_wrong_total_is_refused(tmp_path: Path) -> None:
    for index, path in enumerate(paths(tmp_path)):
        path.write_bytes(part(index, total=7))
    with pytest.raises(UnusableInput, match=r"split\.tensors\.count is 7, the parts hold 6"):
        open_gguf(paths(tmp_path)[0])


def test_a_renamed_part_says_why_the_others_cannot_be_found(tmp_path: Path) -> None:
    path = tmp_path / "renamed.gguf"
    path.write_bytes(part(0))
    with pytest.raises(UnusableInput, match="one of 3 parts, but its name does not end in -NNNNN-of-00003"):
        open_gguf(path)
    other = tmp_path / "m-00001-of-00002.gguf"
    other.write_bytes(part(0))
    with pytest.raises(UnusableInput, match=r"split\.count is 3, its name says 2 parts"):
        open_gguf(other)


def test_a_split_of_one_is_one_file(tmp_path: Path) -> None:
    path = tmp_path / "whole.gguf"
    path.write_bytes(part(0, count=1, total=2))
    assert open_gguf(path).parts == (path,)


def test_a_split_count_that_is_no_number_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m-00001-of-00002.gguf"
    path.write_bytes(gguf_bytes([entry("split.count", "str", "2")]))
    with pytest.raises(UnusableInput, match=r"key split\.count is not a count"):
        open_gguf(path)
