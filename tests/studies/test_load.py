"""Study files: what ships loads, and whatever is wrong with one is named by its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from warptile import kernels
from warptile.contracts import UnusableInput
from warptile.studies import load, names
from warptile.studies.load import parse

GOOD = """
question = "q"
hypothesis = "h"
device = "mali-g610"
control = "four"
expected = ["two", "four"]

[[problem]]
name = "p"
format = "Q4_K"
n = 64
k = 256
m = 32

[[arm]]
name = "four"
tile = "mul_mmq:256,64,64,32,16,16,1,2,2,1,16,4"

[[arm]]
name = "two"
expect = "gain"
tile = { p = "mul_mmq:256,64,64,32,16,16,1,2,2,1,16,2" }
"""


@pytest.mark.parametrize("name", names())
def test_every_shipped_study_loads(name: str) -> None:
    found = load(name)
    assert found.question
    assert set(found.expected) <= {arm.name for arm in found.arms}
    for arm in found.arms:
        for size in arm.sizes:
            for text in size.tiles.values():
                assert kernels.parse_tile(text)[1].text() == text


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    found = load(path)
    assert (found.name, found.control, found.sizes) == ("mine", "four", ("as written",))
    assert found.arm("two").expect == "gain"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('question = "q"\n', "", "question is missing"),
        ('hypothesis = "h"\n', "", "hypothesis is missing"),
        ('expected = ["two", "four"]\n', "", "expected is missing"),
        ('control = "four"', 'control = "six"', "control names arm six; arms are four, two"),
        ('"two", "four"]', '"three"]', "expected names arm three"),
        ('device = "mali-g610"', 'device = "geforce-256"', "no data file for device geforce-256"),
        ('format = "Q4_K"', 'format = "Q9_Z"', "[[problem]] 1 (p): format Q9_Z is unknown"),
        ("k = 256", "k = 100", "k = 100 is not a multiple of Q4_K's block of 256"),
        ("m = 32", "m = 0", "[[problem]] 1 (p): m = 0 is not a whole number from 1"),
        ("m = 32", "", "[[problem]] 1 (p): m is missing"),
        ('tile = "mul_mmq:256,64', 'tile = "mul_warp:256,64', "[[arm]] 1 (four): tile: no kernel 'mul_warp'"),
        ('tile = "mul_mmq:256,64', 'tile = "mul_mmq:many,64', "tile for vulkan.mul_mmq: block_size='many' is not"),
        (",1,16,2", ",1,16,2,3", "13 values"),
        ('tile = { p = "mul_mmq:256,64,64,32,16,16,1,2,2,1,16,2" }', "", "[[arm]] 2 (two): tile is missing"),
        ('expect = "gain"', "lds = { warps = 8 }", "[[arm]] 2 (two): unknown key lds"),
        ("tile = { p =", "tile = { q =", "[[arm]] 2 (two): tile names problem q; problems are p"),
        ('expect = "gain"', 'expect = "luck"', "expect luck is none of gain"),
        ('expect = "gain"', 'against = "five"', "against names arm five"),
        ('expect = "gain"', 'colour = "red"', "[[arm]] 2 (two): unknown key colour"),
        ('name = "two"', 'name = "four"', "arm four is there 2 times"),
        ('question = "q"', 'question = "q"\nsizes = ["a", "b"]', "[[arm]] 1 (four): 1 sizes, the study has 2 (a, b)"),
        ('question = "q"', 'question = "q"\nseconds = -1', "seconds = -1 is not a number above 0"),
        ('question = "q"', "question = [", "not TOML"),
        ("[[arm]]", "[[arms]]", "unknown key arms"),
    ],
)
def test_what_is_wrong_is_named(before: str, after: str, said: str) -> None:
    text = GOOD.replace(before, after) if after.startswith("[[arms") else GOOD.replace(before, after, 1)
    assert text != GOOD
    with pytest.raises(UnusableInput) as caught:
        parse(text, "mine", "mine.toml")
    assert str(caught.value).startswith("mine.toml: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_study_lists_those_that_ship() -> None:
    with pytest.raises(UnusableInput, match="mali-g610"):
        load("no-such-study")
    with pytest.raises(UnusableInput, match="no such file"):
        load("no-such-study.toml")
