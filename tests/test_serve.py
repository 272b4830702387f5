"""y = x w^T as users call it: right by a derived bound, routed by the table, refused where it cannot run."""

from __future__ import annotations

import dataclasses
import gc
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.models import smollm2

from warptile import QuantTensor, Session, kernels
from warptile.contracts import InvalidTile, Problem, UnusableInput
from warptile.places import Places
from warptile.proof.version import PROOF_VERSION
from warptile.search import rank
from warptile.serve import UntunedWarning
from warptile.tables import Point, Table, Validity

MODEL = smollm2()
DIRECT = "vulkan.mul_mm_direct:lanes=8,thread_n=2,thread_m=4,load_n=1,x_access=direct,first=n"


@pytest.fixture(scope="module")
def w() -> QuantTensor:
    return QuantTensor.from_gguf(MODEL, "blk.0.attn_k.weight")


@pytest.fixture
def session(software_device: str, places: Places, tmp_path: Path) -> Iterator[Session]:
    with Session(software_device, Places(places.cache, tmp_path)) as opened:
        yield opened


def x_of(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def assert_close(y: np.ndarray, x: np.ndarray, w: QuantTensor, operand_error: float) -> None:
    """|y - want| <= (2 e + e^2 + k 2^-24) sum_k |x| |w|: operands rounded by e each, k fp32 additions (Higham, 3.5)."""
    dense = w.dequantize().astype(np.float64)
    want = x.astype(np.float64) @ dense.T
    sums = np.abs(x.astype(np.float64)) @ np.abs(dense).T
    bound = (2 * operand_error + operand_error**2 + (w.shape[1] + 1) * 2.0**-24) * sums
    assert (np.abs(y - want) <= bound).all()


@pytest.mark.filterwarnings("ignore::warptile.serve.UntunedWarning")
@pytest.mark.parametrize("shape", [(1, 576), (5, 576), (2, 3, 576), (576,), (33, 576)])
def test_any_leading_shape(session: Session, w: QuantTensor, shape: tuple[int, ...]) -> None:
    x = x_of(*shape)
    y = session.matmul(x, w)
    assert y.shape == (*shape[:-1], 192)
    assert y.dtype == np.float32
    assert_close(y, x, w, 2.0**-11)


@pytest.mark.filterwarnings("ignore::warptile.serve.UntunedWarning")
def test_no_rows_no_work(session: Session, w: QuantTensor) -> None:
    assert session.matmul(x_of(0, 576), w).shape == (0, 192)
    assert session.matmul(x_of(2, 0, 576), w).shape == (2, 0, 192)


@pytest.mark.filterwarnings("ignore::warptile.serve.UntunedWarning")
def test_strided_x(session: Session, w: QuantTensor) -> None:
    x = x_of(576, 8).T[::2]
    assert_close(session.matmul(x, w), x, w, 2.0**-11)


@pytest.mark.parametrize(
    ("x", "said"),
    [
        (np.zeros((2, 575), np.float32), "last axis must be 576"),
        (np.float32(1), "float32"),
        (np.zeros((), np.float32), "last axis must be 576"),
        (np.zeros((2, 576), np.float64), "float64"),
        ([[0.0] * 576], "list"),
    ],
)
def test_unusable_x(session: Session, w: QuantTensor, x: np.ndarray, said: str) -> None:
    with pytest.raises(UnusableInput, match=said):
        session.matmul(x, w)


@pytest.mark.parametrize("kernel", ["mul_mm", "vulkan.mul_mm_direct", "mul_mat_vec"])
def test_a_forced_kernel_runs(session: Session, w: QuantTensor, kernel: str) -> None:
    x = x_of(4, 576)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_close(session.matmul(x, w, kernel=kernel), x, w, 2.0**-11)


def test_a_forced_tile_in_fp32_meets_the_fp32_bound(session: Session, w: QuantTensor) -> None:
    x = x_of(9, 576)
    assert_close(session.matmul(x, w, tile=DIRECT), x, w, 0.0)


def test_a_forced_tile_that_cannot_run_names_the_rule(session: Session, w: QuantTensor) -> None:
    with pytest.raises(InvalidTile, match="accumulators") as caught:
        session.matmul(x_of(4, 576), w, tile=DIRECT.replace("thread_m=4", "thread_m=3200"))
    assert "3200" in caught.value.numbers
    with pytest.raises(UnusableInput, match="no kernel"):
        session.matmul(x_of(4, 576), w, kernel="mul_magic")
    with pytest.raises(UnusableInput, match="names no kernel"):
        session.matmul(x_of(4, 576), w, tile="8,2,4")


def test_untuned_activations_are_never_quantized(
    session: Session, w: QuantTensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    quantizing = kernels.by_name("vulkan.mul_mmq")
    problem = Problem("Q4_1", *w.shape, 33)
    limits = session.runtime.limits()
    cheapest = dataclasses.replace(rank(problem, limits, [quantizing])[0].price, seconds=0.0)
    monkeypatch.setattr(type(quantizing), "price", lambda *_: cheapest)
    assert rank(problem, limits, kernels.for_runtime("vulkan"))[0].kernel == quantizing.name
    assert session.route(problem).kernel.name != quantizing.name


def test_an_untuned_matmul_is_said_once(session: Session, w: QuantTensor) -> None:
    with pytest.warns(UntunedWarning, match="untuned: nothing was measured"):
        session.matmul(x_of(4, 576), w)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session.matmul(x_of(4, 576), w)
        session.matmul(x_of(5, 576), w)


def test_the_table_routes(session: Session, w: QuantTensor, tmp_path: Path, software_device: str) -> None:
    problem = Problem("Q4_1", 192, 576, 4)
    identity = session.runtime.identity()
    kernel, tile = session.route(problem).kernel, None
    from warptile.kernels import parse_tile

    kernel, tile = parse_tile(DIRECT)
    artefact = session.runtime.compile(kernel.source(tile, problem, session.runtime.limits())).key

    def keep(key: str, driver: str) -> None:
        valid = Validity(driver, identity.compiler, key, PROOF_VERSION)
        table = Table.load(tmp_path / "tables", identity)
        table.put(problem, w.format.layout.name, Point(4, DIRECT, DIRECT, 1, 1, 1, 1, 1, 0, "accept", "", valid))
        table.save()

    def reopened() -> tuple[str, str, str]:
        with Session(software_device, session_places) as other:
            route = other.route(problem)
            return route.tile.text(), route.status, route.why

    session_places = Places(tmp_path / "cache", tmp_path)
    keep(artefact, identity.driver)
    assert reopened() == (DIRECT, "tuned", "")
    keep("0" * 64, identity.driver)
    assert reopened() == (DIRECT, "stale", "the kernel's compiled input changed")
    keep(artefact, "an older driver")
    assert reopened()[1:] == ("stale", "driver was an older driver")


@pytest.mark.filterwarnings("ignore::warptile.serve.UntunedWarning")
def test_a_weight_leaves_the_device_with_its_host_copy(session: Session) -> None:
    one = QuantTensor.from_gguf(MODEL, "blk.1.attn_k.weight")
    session.matmul(x_of(1, 576), one)
    assert len(session._weights) == 1
    del one
    gc.collect()
    assert not session._weights


@pytest.mark.filterwarnings("ignore::warptile.serve.UntunedWarning")
def test_threads_may_share_a_session(session: Session, w: QuantTensor) -> None:
    faults: list[object] = []

    def work(rows: int) -> None:
        x = x_of(rows, 576)
        for _ in range(20):
            try:
                assert_close(session.matmul(x, w), x, w, 2.0**-11)
                # Garbage at once: freed by whichever thread finds the device free.
                session.matmul(x, QuantTensor.from_gguf(MODEL, "blk.2.attn_k.weight"))
            except BaseException as error:
                faults.append(error)
                raise

    threads = [threading.Thread(target=work, args=(rows,)) for rows in (1, 2, 5, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    session.matmul(x_of(1, 576), w)
    assert list(session._weights) == [id(w)]


@pytest.mark.filterwarnings("ignore::warptile.serve.UntunedWarning")
def test_a_closed_session_refuses(session: Session, w: QuantTensor) -> None:
    session.matmul(x_of(1, 576), w)
    session.close()
    session.close()
    with pytest.raises(UnusableInput, match="closed"):
        session.matmul(x_of(1, 576), w)
    with pytest.raises(UnusableInput, match="closed"):
        session.route(Problem("Q4_1", 192, 576, 4))


def test_importing_warptile_loads_no_driver() -> None:
    import subprocess
    import sys

    program = "import sys, warptile; warptile.matmul, warptile.tune; print('vulkan' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "False"
