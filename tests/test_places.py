"""The two folders: the user's own by default, read when asked, checked before anything long runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from warptile.contracts import UnusableInput
from warptile.places import Places


def test_the_default_follows_the_environment_at_the_time_of_the_call(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "c"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "s"))
    assert Places.default() == Places(tmp_path / "c" / "warptile", tmp_path / "s" / "warptile")


def test_ready_creates_both_and_leaves_no_litter(tmp_path: Path) -> None:
    places = Places.under(tmp_path / "new").ready()
    assert places.cache.is_dir()
    assert places.state.is_dir()
    assert not [*places.cache.iterdir(), *places.state.iterdir()]


def test_a_folder_that_cannot_be_written_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnusableInput, match=r"state folder .*file/state cannot be written: Not a directory"):
        Places(tmp_path / "cache", tmp_path / "file" / "state").ready()
