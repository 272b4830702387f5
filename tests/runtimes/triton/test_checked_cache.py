"""Compiled code on disk is used only when it is what was written; no group may name a file elsewhere."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

triton = pytest.importorskip("triton")

from warptile.runtimes.triton.compiling import cached_in  # noqa: E402


def manager(folder: Path):  # type: ignore[no-untyped-def]
    with cached_in(folder):
        from triton.runtime.cache import get_cache_manager

        return get_cache_manager("0123456789abcdef" * 4)


def entry(folder: Path) -> tuple[Path, Path]:
    """A kernel's group of two files, put there as Triton does."""
    held = manager(folder)
    group = {"k.cubin": held.put(b"machine code", "k.cubin"), "k.json": held.put('{"shared": 0}', "k.json", False)}
    held.put_group("k.json", group)
    return Path(group["k.cubin"]), Path(held._make_path("__grp__k.json"))


def test_a_whole_entry_is_read_back(tmp_path: Path) -> None:
    cubin, _ = entry(tmp_path)
    assert manager(tmp_path).get_group("k.json")["k.cubin"] == str(cubin)
    assert manager(tmp_path).get_file("k.cubin") == str(cubin)
    assert manager(tmp_path).get_file("absent.so") is None


def test_a_damaged_file_is_compiled_anew_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cubin, _ = entry(tmp_path)
    cubin.write_bytes(b"machine c0de")
    with caplog.at_level(logging.WARNING, "warptile"):
        assert manager(tmp_path).get_group("k.json") is None
    (told,) = [record.getMessage() for record in caplog.records]
    assert told == f"cache file {cubin} does not match its hash: it is not used, and made anew"
    entry(tmp_path)
    assert manager(tmp_path).get_group("k.json") is not None


def test_a_file_without_a_hash_is_not_trusted(tmp_path: Path) -> None:
    cubin, _ = entry(tmp_path)
    cubin.with_name("k.cubin.sha256").unlink()
    assert manager(tmp_path).get_group("k.json") is None


def test_a_group_that_names_a_file_elsewhere_is_refused(tmp_path: Path) -> None:
    """With hashes that match: whoever wrote it could write those as well."""
    other = manager(tmp_path / "other")
    elsewhere = other.put(b"other code", "k.cubin")
    cubin, _ = entry(tmp_path)
    held = manager(tmp_path)
    held.put(json.dumps({"child_paths": {"k.cubin": elsewhere, "k.json": str(cubin.with_name("k.json"))}}),
             "__grp__k.json", False)  # fmt: skip
    assert manager(tmp_path).get_group("k.json") is None
