"""`warptile check` answers for a card that is not here; what it prints must be the model's numbers."""

from __future__ import annotations

import json

import pytest
from rich.console import Console

from warptile import devices
from warptile.check import check, plain
from warptile.cli.check import render
from warptile.contracts import UnusableInput

MALI = devices.by_name("mali-g610")
STOCK_L = "128,128,128,32,32,64,2,4,2,1,16"


def test_llama_cpps_large_tile_on_a_mali() -> None:
    report = check(STOCK_L, MALI, "Q4_K", kernel="mul_mm")
    assert report.valid
    assert report.exit_code == 0
    text = plain(report)
    for line in (
        "verdict           valid",
        "accumulators      128 a thread",
        "shared bytes      17408 a workgroup",
        "threads resident  128 a unit, limited by shared memory",
    ):
        assert line in text.splitlines()
    assert "expected to spill" in text


def test_a_broken_rule_is_printed_with_its_numbers() -> None:
    report = check("32,32,32,32,32,32,2,2,2,1,16", MALI, "q4_k", kernel="vulkan.mul_mm")
    assert report.exit_code == 1
    assert report.price is None
    assert "(32 / 32) * (32 / 32) = 1, 32 / 16 = 2" in plain(report)
    assert "invalid" in plain(report)


def test_a_tile_that_is_only_too_large_says_so() -> None:
    report = check(STOCK_L + ",shared=fp32", MALI, "Q4_K", kernel="mul_mm")
    assert report.exit_code == 1
    assert "does not fit this device" in plain(report)
    assert "34816 > 32768" in plain(report)


def test_json_holds_what_the_text_says() -> None:
    good = json.loads(json.dumps(check(STOCK_L, MALI, "Q4_K", kernel="mul_mm").to_json()))
    assert good["valid"] is True
    assert good["price"]["accumulators"] == 128
    assert good["price"]["limited_by"] == "shared memory"
    bad = json.loads(json.dumps(check(STOCK_L.replace(",16", ",32"), MALI, "Q4_K", kernel="mul_mm").to_json()))
    assert bad["valid"] is False
    assert bad["price"] is None
    assert {b["only_exceeds_device"] for b in bad["broken"]} == {True, False}


def test_rich_form_shows_every_plain_line() -> None:
    report = check(STOCK_L, MALI, "Q4_K", kernel="mul_mm")
    console = Console(width=300, record=True, file=None, force_terminal=False)
    with console.capture() as capture:
        console.print(render(report))
    shown = " ".join(capture.get().split())
    for line in plain(report).splitlines():
        assert " ".join(line.split()) in shown


@pytest.mark.parametrize(
    ("tile", "format_name", "kernel", "message"),
    [
        (STOCK_L, "Q4_K", None, "names no kernel"),
        (STOCK_L, "Q9_K", "mul_mm", "Q9_K"),
        ("128,128", "Q4_K", "mul_mm", "missing"),
        (STOCK_L, "Q4_K", "mul_mn", "mul_mn"),
    ],
)
def test_unusable_input_is_one_line(tile: str, format_name: str, kernel: str | None, message: str) -> None:
    with pytest.raises(UnusableInput, match=message) as caught:
        check(tile, MALI, format_name, kernel=kernel)
    assert "\n" not in str(caught.value)
