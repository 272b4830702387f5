"""Run a kernel once with every buffer between bands of NaN."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from warptile import formats, layouts
from warptile.contracts import DeviceWeights, Kernel, Problem, Runtime, Tile, WeightSlice


def guarded_run(
    device: Runtime,
    kernel: Kernel,
    tile: Tile,
    problem: Problem,
    blocks: NDArray[np.uint8],
    x: NDArray[np.float32],
    max_bytes: int | None = None,
) -> NDArray[np.float32]:
    """y[m, n] of a valid tile: poisoned before, guards checked after, the launch proved by the ids the device wrote.

    A read outside x or w that reaches a sum makes it NaN.
    """
    limits = device.limits()
    assert kernel.broken_rules(tile, problem, limits) == []
    found = formats.by_name(problem.format)
    packed = layouts.pack(found, blocks.reshape(-1), problem.n, problem.k, max_bytes=max_bytes)
    assert max_bytes is None or len(packed.slices) > 1
    slices = []
    for piece in packed.slices:
        buffer = device.guarded_buffer(piece.words.nbytes)
        device.write(buffer, piece.words)
        slices.append(WeightSlice(buffer, piece.row0, piece.rows, piece.planes))
    weights = DeviceWeights(found.name, found.layout.name, problem.n, problem.k, tuple(slices))
    x_buffer = device.guarded_buffer(x.nbytes)
    device.write(x_buffer, x)
    y_buffer = device.guarded_buffer(4 * problem.m * problem.n)
    buffers = [x_buffer, y_buffer, *(piece.buffer for piece in slices)]
    try:
        binary = device.compile(kernel.source(tile, problem, limits))
        launches = kernel.launch(binary, tile, problem, x_buffer, weights, y_buffer)
        device.execute(launches)
        assert device.executed_ids() == [launch.binary.id for launch in launches]
        assert all(device.guards_intact(buffer) for buffer in buffers)
        return device.download(y_buffer, np.float32, (problem.m, problem.n))
    finally:
        device.free(buffers)
