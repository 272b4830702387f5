"""Known wrong-result tuples are found where they are, and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from warptile import cli
from warptile.llama_cpp import Checkout
from warptile.llama_cpp.checking import HostCheck, check_checkout, profiles

SIZES = (16, 32, 64, 128)
WARPS = "(BM / WM) * (BN / WN) = BLOCK_SIZE / WARP"


@pytest.fixture(scope="module")
def reports() -> dict[Checkout, HostCheck]:
    return {}


@pytest.fixture
def invalid(reports: dict[Checkout, HostCheck]):
    """Invalid variables with their rules, on the devices of a subgroup size; a checkout is checked once for all."""

    def of(checkout: Checkout, subgroup: int) -> dict[str, set[str]]:
        if checkout not in reports:
            reports[checkout] = check_checkout(checkout, [d for size in SIZES for d in profiles(size)])
        report = reports[checkout]
        assert not report.notes
        mine = [d for d in report.devices if d.device in profiles(subgroup)]
        assert len(mine) == len(profiles(subgroup))
        assert all(d.tuples >= 3 and not d.notes and not d.refusal for d in mine)
        return {i.variable: {rule.rule for rule in i.broken} for d in mine for i in d.invalid}

    return of


def test_the_small_tile_at_subgroup_16_breaks_where_two_warps_share_one_place(
    newer: Checkout, older: Checkout, invalid
):
    found = invalid(newer, 16)
    assert found["s_warptile"] == found["s_warptile_mmq"] == {WARPS}
    assert all(name.startswith("s_") for name in found)
    assert invalid(older, 16) == {}


def test_a_warp_wider_than_its_tile_at_subgroup_128(newer: Checkout, older: Checkout, invalid):
    assert invalid(older, 128) == {"warptile_l": {"WM <= BM"}, "warptile_m": {"WM <= BM"}}
    assert invalid(newer, 128) == {}


@pytest.mark.parametrize("subgroup", [32, 64])
def test_desktop_cards_have_valid_tuples(newer: Checkout, older: Checkout, invalid, subgroup: int):
    assert invalid(newer, subgroup) == {}
    assert invalid(older, subgroup) == {}


def test_the_verb_says_which_line_breaks_which_rule(older: Checkout, capsys: pytest.CaptureFixture[str]):
    assert cli.run(["check", "--llama-cpp", str(older.root), "--subgroup", "128", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    first = report["devices"][0]["invalid"][0]
    text = older.host.read_text().split("\n")[int(first["where"].rpartition(":")[2]) - 1]
    assert first["variable"] in text
    assert first["broken"][0] == {"rule": "WM <= BM", "numbers": "WM 256 > BM 128", "only_exceeds_device": False}
    assert cli.run(["check", "--llama-cpp", str(older.root), "--device", "rtx-4070"]) == 0


@pytest.mark.parametrize("made", ["nothing", "folder", "file"])
def test_what_is_no_checkout_is_refused_in_one_line(made: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "there"
    if made == "folder":
        path.mkdir()
    elif made == "file":
        path.write_text("void f() {}")
    assert cli.run(["check", "--llama-cpp", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_host_that_is_not_understood_is_refused_not_passed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    host = tmp_path / "ggml" / "src" / "ggml-vulkan" / "ggml-vulkan.cpp"
    host.parent.mkdir(parents=True)
    host.write_text("void other() {\n}\n")
    assert cli.run(["check", "--llama-cpp", str(tmp_path)]) == 2
    assert "ggml_vk_load_shaders" in capsys.readouterr().err
