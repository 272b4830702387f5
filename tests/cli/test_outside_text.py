"""What comes from outside reaches the terminal as one printable line."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from warptile.cli import journal, live, run, show
from warptile.journal import Journal
from warptile.tuning.result import Event

ESCAPE = "\x1b[31m"


def test_lines_are_whole_and_printable() -> None:
    text = show.line(f"{ESCAPE}[bold]a\nb" + "c" * 200)
    assert text.plain == "\\x1b[31m[bold]a\\nb" + "c" * 200
    assert not text.spans


def test_the_display_shows_a_table_s_tile_without_obeying_it() -> None:
    out = io.StringIO()
    with live.Display(Console(file=out, width=200), "model", "vulkan:0", 60) as display:
        display.update(Event("recheck", f"Q4_1 n=64  {ESCAPE}evil", 1.0, 59.0, 0))
    assert "evil" in out.getvalue()
    assert "\x1b" not in out.getvalue()


def test_an_error_line_has_no_escape_codes(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--tile", f"mul_mm:{ESCAPE}=1", "--device", "mali-g610"]) == 2
    assert "\x1b" not in capfd.readouterr().err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_journal_that_cannot_be_written_can_be_listed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Journal(tmp_path / "journal").append({"kind": "run", "event": "start"})
    (tmp_path / "journal").chmod(0o555)
    assert run(["journal", "list", "--state", str(tmp_path)]) == 0
    assert "start" in capfd.readouterr().out


def test_the_index_of_a_folder_without_rights_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Journal(tmp_path)
    assert journal.index_path(kept) == str(tmp_path / "index.sqlite")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert journal.index_path(kept) == ":memory:"
