"""`warptile tune --fleet` as it is typed: the address may be left out, and what cannot work is one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from warptile.cli import run
from warptile.cli.fleet import with_address


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        (["tune", "a.gguf", "--fleet"], ["tune", "a.gguf", "--fleet=local"]),
        (["tune", "--fleet", "--m", "1", "a.gguf"], ["tune", "--fleet=local", "--m", "1", "a.gguf"]),
        (["tune", "--fleet", "a.gguf"], ["tune", "--fleet=local", "a.gguf"]),
        (["tune", "a.gguf", "--fleet", "auto"], ["tune", "a.gguf", "--fleet", "auto"]),
        (["tune", "a.gguf", "--fleet", "10.0.0.5:6379"], ["tune", "a.gguf", "--fleet", "10.0.0.5:6379"]),
        (["tune", "a.gguf", "--fleet=board:1"], ["tune", "a.gguf", "--fleet=board:1"]),
    ],
)
def test_the_address_may_be_left_out(typed: list[str], read: list[str]) -> None:
    assert with_address(typed) == read


def test_several_models_need_a_fleet(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tune", "a.gguf", "b.gguf"]) == 2
    assert "several models are tuned with --fleet" in capsys.readouterr().err


def test_an_address_where_nothing_listens_is_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ray")
    folders = ["--state", str(tmp_path / "s"), "--cache", str(tmp_path / "c")]
    assert run(["tune", "smollm2-135m", "--fleet", "127.0.0.1:9", *folders]) == 2
    assert "Ray at 127.0.0.1:9: cannot be reached" in capsys.readouterr().err
