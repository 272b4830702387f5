"""llama.cpp's own shaders, compiled from a checkout and run: right with a right tuple, caught with a wrong one."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Iterator

import pytest

from warptile.contracts import Problem, Runtime
from warptile.kernels import Kernels, all_kernels, arrangement_of
from warptile.kernels.vulkan.llama_cpp import LlamaCpp, of_checkout
from warptile.kernels.vulkan.llama_cpp.tile import tile_of
from warptile.llama_cpp import Checkout
from warptile.places import Places
from warptile.proof import prove
from warptile.runtimes import open_device

SMALL = Problem("Q4_1", 40, 128, 16)


@pytest.fixture(scope="module")
def device(software_device: str, places: Places) -> Iterator[Runtime]:
    runtime = open_device(software_device, places)
    yield runtime
    runtime.close()


def test_the_hosts_own_tuple_is_proved_right_on_its_shader(newer: Checkout, device: Runtime):
    kernel, limits = of_checkout(newer), device.limits()
    stock = kernel.stock(SMALL, limits)
    assert stock is not None
    assert stock.fields()["shader"] == "mul_mm"
    assert not kernel.broken_rules(stock, SMALL, limits)
    verdict = prove(device, kernel, stock, SMALL)
    assert verdict.right, verdict.detail
    text = kernel.source(stock, SMALL, limits).text
    assert "#include" not in text
    # k that is no multiple of the pipeline's alignment, or few tokens, take the other build.
    assert kernel.source(stock, SMALL, limits).constants != kernel.source(stock, SMALL.at(8), limits).constants


def test_int8_products_with_the_checkouts_quantizer(newer: Checkout, device: Runtime, monkeypatch: pytest.MonkeyPatch):
    limits = device.limits()
    accelerated = dataclasses.replace(limits, features=limits.features | {"int_dot_accelerated"})
    monkeypatch.setattr(device, "limits", lambda: accelerated)
    kernel, problem = of_checkout(newer), Problem("Q4_K", 40, 256, 16)
    stock = kernel.stock(problem, accelerated)
    assert stock is not None
    assert stock.fields()["shader"] == "mul_mmq"
    verdict = prove(device, kernel, stock, problem)
    assert verdict.right, verdict.detail


def test_a_tuple_with_too_few_warps_is_refused_and_shown_wrong_where_it_is_forced(
    newer: Checkout, device: Runtime, monkeypatch: pytest.MonkeyPatch
):
    """As the host's small tuple for experts at subgroup 8: two warps where the tile has four places."""
    kernel = of_checkout(newer)
    wrong = tile_of((32, 32, 32, 32, 8, 32, 2, 2, 2, 1, 16), "mul_mm", "fp16", "fp16")
    rules = [rule.rule for rule in kernel.broken_rules(wrong, SMALL, device.limits())]
    assert rules == ["(BM / WM) * (BN / WN) = BLOCK_SIZE / WARP"]
    monkeypatch.setattr(LlamaCpp, "broken_rules", lambda *_: [])
    verdict = prove(device, kernel, wrong, SMALL)
    assert verdict.failed == "written", verdict.detail


def test_the_kernel_goes_with_a_job_and_is_not_among_those_of_the_package(newer: Checkout):
    kernel = of_checkout(newer)
    resolve = pickle.loads(pickle.dumps(Kernels((kernel,))))
    tile = tile_of((32, 32, 32, 32, 32, 32, 2, 2, 2, 1, 16), "mul_mm", "fp16", "fp16")
    found, parsed = resolve(tile.text())
    assert found.checkout == newer
    assert parsed == tile
    assert kernel.name not in all_kernels()
    assert arrangement_of(found, None) == "file"
