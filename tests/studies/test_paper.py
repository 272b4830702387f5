"""Studies on paper: the sources' budgets and residency, their winners and losers, and why."""

from __future__ import annotations

import dataclasses

import pytest

from warptile import devices
from warptile.contracts import UnusableInput
from warptile.studies import Paper, load, paper
from warptile.studies.paper import PaperArm, PaperRow

MALI = devices.by_name("mali-g610")


@pytest.fixture(scope="module")
def mali() -> Paper:
    return paper(load("mali-g610"), MALI)


def row(table: Paper, arm: str, problem: str) -> PaperRow:
    return next(r for r in table.rows if (r.arm, r.problem) == (arm, problem))


def arm(table: Paper, name: str) -> PaperArm:
    return next(a for a in table.arms if a.arm == name)


@pytest.mark.parametrize(
    ("name", "accumulators", "mul_mm", "shared", "by_shared"),
    [
        ("stock", 128, (17408, 128), 28672, 128),
        ("it1", 16, (6528, 640), 9728, 384),
        ("it2", 32, (8704, 384), 14336, 256),
        ("it3", 16, (8704, 768), 14336, 512),
        ("it4", 16, None, 7168, 1024),
        ("it5", 16, None, 7168, 1024),
        ("it6", 16, None, 3584, 2048),
    ],
)
def test_mali_residency_is_the_sources(
    mali: Paper, name: str, accumulators: int, mul_mm: tuple[int, int] | None, shared: int, by_shared: int
) -> None:
    found = row(mali, name, "ub128")
    assert found.price is not None
    assert (found.price.accumulators, found.price.shared_bytes, found.threads_by_shared) == (
        accumulators,
        shared,
        by_shared,
    )
    assert [(b.shared_bytes, b.resident_threads) for b in found.beside] == ([mul_mm] if mul_mm else [])
    assert found.price.resident_threads == min(by_shared, 1024), "the register file holds 1024 threads"


def test_mali_order_is_the_sources_and_it5_is_first(mali: Paper) -> None:
    assert mali.predicted == mali.expected == ("it5", "it4", "it3", "it1", "it6", "it2", "stock")
    assert mali.spearman == pytest.approx(1.0)
    assert all(a.agrees for a in mali.arms if a.expect != "open")


def test_mali_losses_come_with_their_reasons(mali: Paper) -> None:
    it2, it6 = arm(mali, "it2"), arm(mali, "it6")
    assert it2.predicted == it6.predicted == "loss"
    assert "32 accumulators a thread spill, 16 do not" in it2.reasons
    assert any("256 resident threads" in r and "384" in r for r in it2.reasons)
    assert any("still 1024 resident threads (limited by registers)" in r for r in it6.reasons)
    assert "128 barriers a workgroup against 64" in it6.reasons


def test_mali_the_medium_tile_is_a_control_that_only_it4_touches(mali: Paper) -> None:
    ratios = {r.arm: r.ratio for r in mali.rows if r.problem == "ub64"}
    assert ratios.pop("it4") != 1.0
    assert set(ratios.values()) == {1.0}
    assert ratios.keys() >= {"it5", "it6", "stock"}


def test_ptq1_0_the_wider_tile_and_the_uniform_loader_both_gain() -> None:
    table = paper(load("ptq1_0-loader"), devices.by_name("rtx-4070"))
    assert table.predicted[0] == "J128 uniform"
    assert arm(table, "J128 divergent").predicted == arm(table, "J128 uniform").predicted == "gain"
    assert arm(table, "J128 uniform").reasons == ("other work a thread: loader uniform against divergent",)
    assert row(table, "J128 uniform", "pp2048").price.shared_bytes == 4 * 36 * (128 + 128)  # type: ignore[union-attr]


def test_a_smaller_device_takes_a_later_size_and_shows_what_was_refused() -> None:
    table = paper(load("ptq1_0-loader"), devices.by_name("lavapipe"))
    assert table.size == "64 weight rows, subgroup 8"
    assert {r.arm for r in table.refused} == {a.arm for a in table.arms}
    assert all("subgroup" in r.broken[0].rule for r in table.refused)
    assert all(r.matmul.n == 512 for r in table.rows), "a software device runs the study's smaller problem"


def test_no_arm_that_fits_is_named() -> None:
    tiny = dataclasses.replace(MALI, name="tiny", shared_bytes=1024)
    with pytest.raises(UnusableInput, match=r"no arm fits tiny at any size; stock on ub128: .*28672 > 1024"):
        paper(load("mali-g610"), tiny)


def test_a_card_without_the_feature_refuses_by_rule() -> None:
    old = dataclasses.replace(MALI, features=frozenset({"fp16"}))
    with pytest.raises(UnusableInput, match="needs feature int_dot"):
        paper(load("mali-g610"), old)


@pytest.mark.parametrize(
    ("name", "q4_k", "q6_k"),
    [
        ("default", 25600, 24576),
        ("Wide", 51200, 49152),
        ("Shared", 55872, 53824),
        ("BigTile", 65216, 63168),
        ("narrow-K", 53760, 51712),
        ("ItGroup 4", 69888, 67840),
    ],
)
def test_rdna4_budgets_are_the_sources(name: str, q4_k: int, q6_k: int) -> None:
    table = paper(load("rdna4-bigtile"), devices.by_name("rx-9060-xt"))
    assert row(table, name, "qkv Q4_K").shared_bytes == q4_k
    assert row(table, name, "qkv Q6_K").shared_bytes == q6_k
    found = arm(table, name)
    assert (found.predicted == "refused") == (name == "ItGroup 4")
    if name == "ItGroup 4":
        assert "shared bytes <= shared bytes of a workgroup (69888 > 65536)" in found.reasons
        assert found.agrees


def test_rdna4_takes_fewer_warps_on_an_h200_and_shows_the_published_sizes_refused() -> None:
    table = paper(load("rdna4-bigtile"), devices.by_name("h200"))
    assert table.size == "k = 32, fewer warps"
    budgets = {r.arm: r.shared_bytes for r in table.rows if r.problem == "qkv Q4_K"}
    assert budgets == {
        "default": 12800, "Wide": 25600, "Shared": 30272, "BigTile": 39616, "narrow-K": 36352, "ItGroup 4": 44288,
    }  # fmt: skip
    refused = {(r.arm, r.broken[0].numbers) for r in table.refused if (r.problem, r.size) == ("qkv Q4_K", "k = 32")}
    assert refused == {
        ("Wide", "51200 > 49152"), ("Shared", "55872 > 49152"), ("BigTile", "65216 > 49152"),
        ("narrow-K", "53760 > 49152"), ("ItGroup 4", "69888 > 49152"),
    }  # fmt: skip


def test_rdna4_has_six_shapes_a_tail_and_a_decode() -> None:
    problems = {p.name: p.problem for p in load("rdna4-bigtile").problems}
    assert len(problems) == 10
    assert (problems["tail Q4_K"].m, problems["decode Q6_K"].m) == (132, 1)
