"""Nothing that a person must read whole is cut, and what a hint prints can be pasted."""

from __future__ import annotations

import io
import json
import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table

from warptile.cli import options, show
from warptile.cli.wrap import wrapped

TILE = "vulkan.mul_mm:block_size=128,tile_n=128,tile_m=128,tile_k=32,warp_n=32,warp_m=64,warp_iterations_n=2,thread_n=4"


@given(st.text(st.sampled_from("ab, :=12"), max_size=60), st.integers(1, 30))
def test_wrapping_loses_no_letter_and_keeps_the_width(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert all(len(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize("width", [40, 80, 100])
def test_a_tile_in_a_table_breaks_after_commas(width: int) -> None:
    console = Console(file=io.StringIO(), width=width)
    table = Table.grid(padding=(0, 2))
    table.add_row("tile", show.wrapping(TILE))
    console.print(table)
    out = console.file.getvalue()  # type: ignore[attr-defined]
    lines = [line[6:].rstrip() for line in out.splitlines()]
    assert "".join(lines) == TILE
    assert all(line.endswith(",") for line in lines[:-1])


def test_outside_text_is_neither_markup_nor_a_control_sequence() -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    console.print(show.wrapping("[bold]x[/bold]\x1b[2J"))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "[bold]x[/bold]" in shown
    assert "\x1b[2J" not in shown


def test_paths_are_seen_from_the_working_directory_where_that_is_shorter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert show.path(tmp_path / "a" / "b") == "a/b"
    assert show.path("/x") == "/x"


def test_a_command_reads_back_as_its_words(tmp_path: Path) -> None:
    chosen = options.given("vulkan:llvmpipe (LLVM 15)", tmp_path / "my state", None)
    words = [word for name in chosen for word in chosen[name]]
    assert shlex.split(show.command("table", "show", *words))[1:] == ["table", "show", *words]
    assert options.given(options.FIRST_DEVICE, None, None) == {}


def test_an_interval_of_too_few_rounds_is_words() -> None:
    assert show.interval(1e-9, 1e9) == "few rounds"
    assert re.fullmatch(r"\[1\.10, 1\.20\]", show.interval(1.1, 1.2))


def test_a_number_that_is_not_finite_is_null_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    show.print_json({"perplexity": float("inf"), "rates": (1.5, float("nan"))})
    assert json.loads(capsys.readouterr().out) == {"perplexity": None, "rates": [1.5, None]}
