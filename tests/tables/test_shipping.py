"""Tables that come with the package: of exactly one device, stale elsewhere, behind what was measured here."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from warptile.contracts import Identity, Limits, Problem, UnusableInput
from warptile.devices import by_name
from warptile.kernels import for_runtime
from warptile.proof.version import PROOF_VERSION
from warptile.routing import route
from warptile.search import rank
from warptile.tables import Point, Table, Validity, renew_shipped, ship, shipped_table
from warptile.tables.shipping import shipped_folder

H200 = Identity("NVIDIA H200", "NVIDIA 580.1, CUDA runtime 13.0", "triton 3.9.0", "cuda")
PROBLEM = Problem("Q4_K", 4096, 4096, 16, "fp16", "fp16")
KEY = "e" * 64


@pytest.fixture(scope="module")
def limits() -> Limits:
    return by_name("h200", "cuda")


@pytest.fixture(scope="module")
def tiles(limits: Limits) -> list[str]:
    """Valid tiles, the best-priced one last."""
    kernels = [k for k in for_runtime("cuda") if k.name == "triton.gemm"]
    return [c.tile.text() for c in rank(PROBLEM, limits, kernels)[:4]][::-1]


def point(tile: str, m: int = 16, rounds: int = 40, driver: str = H200.driver) -> Point:
    valid = Validity(driver, H200.compiler, KEY, PROOF_VERSION)
    return Point(
        m, tile, tile, 1e-5, 2e-5, 2.0, 1.9, 2.1, 0.01, "accept", "", valid, rounds, f"2026-01-01T00:00:{rounds:02d}"
    )


def layout() -> str:
    from warptile import formats

    return formats.by_name("Q4_K").layout.name


def put(folder: Path, *points: Point, identity: Identity = H200) -> Table:
    made = Table.load(folder, identity)
    for each in points:
        made.put(PROBLEM.at(each.m), layout(), each)
    made.save()
    return made


def test_only_points_that_were_raced_under_one_driver_are_shipped(tmp_path: Path, tiles: list[str]) -> None:
    own = put(
        tmp_path / "own",
        point(tiles[0], 1),
        point(tiles[1], 16),
        point(tiles[1], 64, rounds=0),
        point(tiles[1], 128, 12, "NVIDIA 1"),
    )
    path, kept, left = ship(own.path, tmp_path / "shipped")
    assert (kept, left) == (2, 2)
    shipped = shipped_table(H200, tmp_path / "shipped")
    assert shipped is not None
    assert shipped.path == path
    assert [p.m for row in shipped.rows() for p in row.points] == [1, 16]
    assert ship(own.path, tmp_path / "shipped")[1] == 2  # replaces, does not add up


def test_a_table_is_for_exactly_one_device_and_runtime(tmp_path: Path, tiles: list[str]) -> None:
    ship(put(tmp_path / "own", point(tiles[0])).path, tmp_path / "shipped")
    for other in (
        dataclasses.replace(H200, device="NVIDIA H200 NVL"),
        dataclasses.replace(H200, runtime="vulkan"),
    ):
        assert shipped_table(other, tmp_path / "shipped") is None


def test_another_driver_or_compiler_or_kernel_is_served_stale(tmp_path: Path, tiles: list[str], limits: Limits) -> None:
    ship(put(tmp_path / "own", point(tiles[0])).path, tmp_path / "shipped")
    for identity, key, status, why in (
        (H200, KEY, "tuned", ""),
        (dataclasses.replace(H200, driver="NVIDIA 2"), KEY, "stale", "driver was NVIDIA 580.1, CUDA runtime 13.0"),
        (dataclasses.replace(H200, compiler="triton 4"), KEY, "stale", "compiler was triton 3.9.0"),
        (H200, "f" * 64, "stale", "the kernel's compiled input changed"),
    ):
        shipped = shipped_table(identity, tmp_path / "shipped")
        assert shipped is not None
        found = route(PROBLEM, [Table.load(tmp_path / "none", identity), shipped], limits, lambda *_, k=key: k)
        assert (found.tile.text(), found.status, found.why) == (tiles[0], status, why)


def test_what_was_measured_here_goes_first(tmp_path: Path, tiles: list[str], limits: Limits) -> None:
    """At its own m; an m measured only elsewhere is better served by that than by another m of here."""
    ship(put(tmp_path / "a", point(tiles[0], 16), point(tiles[0], 64)).path, tmp_path / "shipped")
    shipped = shipped_table(H200, tmp_path / "shipped")
    assert shipped is not None
    own = put(tmp_path / "b", point(tiles[1], 16))
    assert route(PROBLEM, [own, shipped], limits, lambda *_: KEY).tile.text() == tiles[1]
    at_64 = route(PROBLEM.at(64), [own, shipped], limits, lambda *_: KEY)
    assert (at_64.tile.text(), at_64.status) == (tiles[0], "tuned")


def test_points_that_were_proved_again_are_of_the_new_proof(tmp_path: Path, tiles: list[str]) -> None:
    """Only where driver, compiler and compiled input are what was proved; the measurement stays as it was."""
    old = dataclasses.replace(point(tiles[0]), validity=Validity(H200.driver, H200.compiler, KEY, PROOF_VERSION - 1))
    own = put(
        tmp_path / "own",
        old,
        dataclasses.replace(old, m=64, validity=dataclasses.replace(old.validity, artefact="f" * 64)),
    )
    folder = tmp_path / "shipped"
    ship(own.path, folder)
    elsewhere = dataclasses.replace(H200, driver="NVIDIA 2")
    assert renew_shipped(elsewhere, PROOF_VERSION, {KEY}, folder) == 0
    assert renew_shipped(H200, PROOF_VERSION, {KEY}, folder) == 1
    shipped = shipped_table(H200, folder)
    assert shipped is not None
    proofs = {p.m: p.validity.proof for row in shipped.rows() for p in row.points}
    assert proofs == {16: PROOF_VERSION, 64: PROOF_VERSION - 1}
    assert renew_shipped(H200, PROOF_VERSION, {KEY}, folder) == 0
    with pytest.raises(UnusableInput, match="NVIDIA H20 "):
        renew_shipped(dataclasses.replace(H200, device="NVIDIA H20"), PROOF_VERSION, {KEY}, folder)


def test_what_is_no_table_is_not_shipped(tmp_path: Path, tiles: list[str]) -> None:
    with pytest.raises(UnusableInput, match="cannot be read"):
        ship(tmp_path / "absent.json", tmp_path)
    with pytest.raises(UnusableInput, match="raced for 8 rounds"):
        ship(put(tmp_path / "own", point(tiles[0], rounds=0)).path, tmp_path / "shipped")


def test_the_tables_in_the_package_can_be_served(limits: Limits) -> None:
    """Every tile of theirs is one that this version knows, proved by the present gate, and faster than stock."""
    import json

    from warptile.kernels import parse_tile

    for path in sorted(shipped_folder().glob("*.json")):
        value = json.loads(path.read_text("utf-8"))
        served = shipped_table(Identity(value["device"], "", "", value["runtime"]))
        assert served is not None, f"{path.name} is not the name of the device in it"
        for row in served.rows():
            parse_tile(row.tile)
            assert all(p.validity.proof == PROOF_VERSION and p.rounds >= 8 for p in row.points)
            assert all(p.low > 1 for p in row.points if p.outcome == "accept")
