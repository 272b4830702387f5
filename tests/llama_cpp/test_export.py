"""What is given back: a diff that applies, means what it says, and touches no other device."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from pathlib import Path

import pytest

from warptile import devices
from warptile.contracts import Identity, Limits, Problem, UnusableInput
from warptile.kernels.vulkan.llama_cpp import LlamaCpp, of_checkout
from warptile.kernels.vulkan.llama_cpp.choice import host_device
from warptile.kernels.vulkan.llama_cpp.tile import tile_of
from warptile.llama_cpp import Checkout
from warptile.llama_cpp.exporting import export
from warptile.llama_cpp.host import Host
from warptile.llama_cpp.tuning import layout_name
from warptile.proof.version import PROOF_VERSION
from warptile.tables import Point, Table, Validity

IDENTITY = Identity("test card", "driver 1", "glslang 1", "vulkan")
PROBLEM = Problem("Q4_1", 512, 512, 128)
NEW = (128, 64, 128, 32, 32, 64, 1, 8, 4, 1, 32)


@pytest.fixture(scope="module")
def limits() -> Limits:
    card = devices.by_name("lavapipe")
    return dataclasses.replace(card, name=IDENTITY.device, features=card.features | {"fp16"})


@pytest.fixture(scope="module")
def kernel(newer: Checkout) -> LlamaCpp:
    return of_checkout(newer)


def table_with(kernel: LlamaCpp, limits: Limits, folder: Path, numbers: tuple[int, ...], **changes: object) -> Table:
    stock = kernel.stock(PROBLEM, limits)
    assert stock is not None
    tile = tile_of(numbers, "mul_mm", "fp16", "fp16")
    assert not kernel.broken_rules(tile, PROBLEM, limits)
    point = Point(
        m=128, tile=tile.text(), stock=stock.text(), seconds=0.01, stock_seconds=0.02, ratio=2.0, low=1.9, high=2.1,
        floor=0.01, outcome="accept", reason="", validity=Validity("driver 1", "glslang 1", "0" * 64, PROOF_VERSION),
        rounds=40,
    )  # fmt: skip
    table = Table.load(folder, IDENTITY)
    table.put(PROBLEM, layout_name(kernel.checkout), dataclasses.replace(point, **changes))
    return table


def test_the_diff_applies_and_the_patched_host_dispatches_by_the_new_sides(
    kernel: LlamaCpp, limits: Limits, tmp_path: Path
):
    made = export(kernel, limits, IDENTITY, table_with(kernel, limits, tmp_path, NEW), [])
    tree = tmp_path / "tree"
    shutil.copytree(kernel.checkout.root, tree)
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    for extra in (["--check"], []):
        subprocess.run(["git", "-C", str(tree), "apply", *extra, "-"], input=made.patch.diff.encode(), check=True)
    patched = Host(Checkout.open(tree)).choose(host_device(limits)).pipelines
    large = [p for p in patched if p.variable == "l_warptile_mmq"]
    assert {p.constants[:11] for p in large} == {NEW}
    assert {p.denoms for p in large} == {(64, 128, 1)}
    # The other tuples that share the old divisors keep them.
    assert {p.denoms for p in patched if p.variable == "l_warptile_mmqid"} == {(128, 128, 1)}
    other = dataclasses.replace(host_device(limits), name="another card")
    assert {p.denoms for p in Host(Checkout.open(tree)).choose(other).pipelines if p.size == "l"} == {(128, 128, 1)}
    assert "//" not in "".join(line for line in made.patch.diff.split("\n") if line.startswith("+"))
    for part in ("test card", "driver 1", "2.00 | [1.90, 2.10]", "test-backend-ops test -o MUL_MAT", "Q4_1"):
        assert part in made.text


@pytest.mark.parametrize(
    "changes",
    [
        {"outcome": "undecided"},
        {"low": 0.99},
        {"validity": Validity("driver 2", "glslang 1", "0" * 64, PROOF_VERSION)},
    ],
    ids=["undecided", "not faster", "another driver"],
)
def test_what_was_not_measured_to_be_faster_here_is_not_given_back(
    kernel: LlamaCpp, limits: Limits, tmp_path: Path, changes: dict[str, object]
):
    table = table_with(kernel, limits, tmp_path, NEW, **changes)
    with pytest.raises(UnusableInput, match="no tuple was measured"):
        export(kernel, limits, IDENTITY, table, [])
