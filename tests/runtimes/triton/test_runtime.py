"""The Triton runtime behind the contract, in Triton's interpreter."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from warptile import formats, kernels
from warptile.contracts import MissingExtra, Problem, Runtime, UnusableInput
from warptile.contracts.launch import Launch
from warptile.kernels.triton.program import Program
from warptile.layouts import pack, pack_repeated, upload
from warptile.places import Places
from warptile.proof.weights import random_blocks
from warptile.runtimes import open_device
from warptile.runtimes.registry import rooms

PROBLEM = Problem("Q8_0", 32, 256, 3, "fp16", "fp16")
KERNEL, TILE = kernels.parse_tile("triton.gemm:tile_n=16,tile_m=8,tile_k=128,warps=1")


def launched(runtime: Runtime) -> tuple[Launch, ...]:
    fmt = formats.by_name(PROBLEM.format)
    blocks = random_blocks(fmt, PROBLEM.n * PROBLEM.k // fmt.block_size, np.random.default_rng(0))
    weights = upload(runtime, pack(fmt, blocks.reshape(-1), PROBLEM.n, PROBLEM.k, arrangement="quads"))
    x = runtime.upload(np.ones((PROBLEM.m, PROBLEM.k), np.float16))
    y = runtime.upload(np.zeros((PROBLEM.m, PROBLEM.n), np.float16))
    binary = runtime.compile(KERNEL.source(TILE, PROBLEM, runtime.limits()))
    return KERNEL.launch(binary, TILE, PROBLEM, x, weights, y)


def test_cuda_and_hip_are_one_room() -> None:
    found = rooms()
    assert found["cuda"] is found["hip"]
    assert found["cuda"] is not found["vulkan"]


def test_without_a_card_the_reason_is_one_line(places: Places) -> None:
    with pytest.raises((UnusableInput, MissingExtra)) as error:
        open_device("cuda:0", places)
    assert "\n" not in str(error.value)


def test_what_ran_is_what_was_compiled(interpreter: Runtime) -> None:
    launches = launched(interpreter)
    interpreter.execute(launches * 2)
    assert interpreter.executed_ids() == [launches[0].binary.id] * 2
    empty = dataclasses.replace(launches[0], grid=(0, 1, 1))
    interpreter.execute([empty])
    assert interpreter.executed_ids() == [0]


def test_timing_gives_a_positive_time_a_launch(interpreter: Runtime) -> None:
    launches = launched(interpreter)
    assert all(seconds > 0 for seconds in interpreter.time(launches * 3))


@pytest.mark.parametrize("at_end", [False, True])
def test_a_write_beside_the_payload_is_seen(interpreter: Runtime, at_end: bool) -> None:
    buffer = interpreter.guarded_buffer(1000, at_end=at_end)
    assert np.isnan(interpreter.download(buffer, np.float32, (250,))).all()
    interpreter.write(buffer, np.arange(1000, dtype=np.uint8))
    assert interpreter.guards_intact(buffer)
    buffer.memory[buffer.offset - 1] = 0  # type: ignore[attr-defined]
    assert not interpreter.guards_intact(buffer)
    interpreter.free([buffer])
    with pytest.raises(ValueError, match="freed"):
        interpreter.download(buffer, np.uint8, (1,))


def test_a_binary_is_named_by_what_decides_its_code(interpreter: Runtime) -> None:
    limits = interpreter.limits()
    one = interpreter.compile(KERNEL.source(TILE, PROBLEM, limits))
    other = interpreter.compile(KERNEL.source(dataclasses.replace(TILE, group_m=4), PROBLEM, limits))
    same = interpreter.compile(KERNEL.source(TILE, PROBLEM.at(7), limits))
    assert one.id != other.id
    assert same is one


def test_a_program_survives_being_text(interpreter: Runtime) -> None:
    source = KERNEL.source(TILE, PROBLEM, interpreter.limits())
    program = Program.parse(source)
    assert program.source(source.bindings, source.scalars, source.workgroup, source.subgroup or 0) == source


def test_foreign_sources_are_refused(interpreter: Runtime) -> None:
    source = dataclasses.replace(KERNEL.source(TILE, PROBLEM, interpreter.limits()), language="glsl")
    with pytest.raises(UnusableInput, match="glsl"):
        interpreter.compile(source)
    with pytest.raises(UnusableInput, match="checked"):
        interpreter.compile(KERNEL.source(TILE, PROBLEM, interpreter.limits()), "checked")


def test_a_card_is_named_with_its_kernel_modules_version(tmp_path: Path) -> None:
    """Measurements hold for one driver; a version read wrongly would call stale ones tuned."""
    pytest.importorskip("triton")
    from warptile.runtimes.triton.backends import _nvidia_driver

    text = (
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\nGCC version:  gcc 12.2.0\n"
    )
    (tmp_path / "version").write_text(text)
    assert _nvidia_driver(tmp_path / "version") == "580.159.04"


@pytest.mark.parametrize(
    ("name", "n", "rows"), [("Q4_K", 70, 70), ("Q6_K", 70, 20), ("PTQ1_0", 33, 7), ("IQ3_S", 20, 20)]
)
def test_weights_are_packed_on_the_device_as_on_the_host(interpreter: Runtime, name: str, n: int, rows: int) -> None:
    """What a race, a session and a model upload on a card: file blocks, repeated along n where fewer are drawn."""
    found = formats.by_name(name)
    k = max(256, 2 * found.block_size)
    blocks = random_blocks(found, rows * k // found.block_size, np.random.default_rng(5)).reshape(rows, -1)
    packed = interpreter.pack_weights(found, blocks, n, k)  # type: ignore[attr-defined]
    host = pack_repeated(found, blocks, n, k, None, "quads")
    assert [(s.row0, s.rows, s.planes) for s in packed.slices] == [(s.row0, s.rows, s.planes) for s in host.slices]
    for own, other in zip(packed.slices, host.slices, strict=True):
        got = interpreter.download(own.buffer, np.uint32, other.words.shape)
        np.testing.assert_array_equal(got, other.words)
