"""Several matmuls of the same activations in one submission: y_i = x w_i^T, x written once and quantized once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warptile.contracts import Binary, Buffer, DeviceWeights, Launch, Problem, Runtime, Scratch, Tile, Wrong
from warptile.contracts.kernel import Kernel

MOST_BUFFERS = 32
"""Input and output buffers kept between runs; sizes grow to powers of two, so a model asks for a few."""


@dataclass(frozen=True)
class Product:
    """One matmul of a group: which kernel's compiled tile computes which problem with which weights."""

    kernel: Kernel
    tile: Tile
    binary: Binary
    problem: Problem
    weights: DeviceWeights


@dataclass(frozen=True)
class Timed:
    """Device seconds of one launch. product: the matmul of the group it belongs to; helper: whether it prepares or
    finishes (activations quantized, parts summed)."""

    product: Product
    helper: bool
    seconds: float


class Together:
    """Runs groups on one runtime, through buffers that stay on the device from one run to the next."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._kept: dict[tuple[str, int], Buffer] = {}

    def run(self, x: NDArray[np.float32], products: Sequence[Product]) -> list[NDArray[np.float32]]:
        """y_i[m, n_i] in fp32 for x[m, k] in fp32, in order; one copy of x in, one of each y out.

        Raises Wrong where the device did not run what was launched, and what the runtime raises.
        """
        outputs, launches = self._launches(x, products)
        self._runtime.execute([launch for _, launch in launches])
        self._check(launches)
        return self._read(outputs, products)

    def time(
        self, x: NDArray[np.float32], products: Sequence[Product]
    ) -> tuple[list[NDArray[np.float32]], list[Timed]]:
        """`run` with the device seconds of every launch."""
        outputs, launches = self._launches(x, products)
        seconds = self._runtime.time([launch for _, launch in launches])
        self._check(launches)
        timed = [
            Timed(product, launch.binary.id != product.binary.id, spent)
            for (product, launch), spent in zip(launches, seconds, strict=True)
        ]
        return self._read(outputs, products), timed

    def _launches(
        self, x: NDArray[np.float32], products: Sequence[Product]
    ) -> tuple[list[Buffer], list[tuple[Product, Launch]]]:
        wanted = [("x", x.nbytes), *((f"y{i}", 4 * p.problem.m * p.problem.n) for i, p in enumerate(products))]
        source, *outputs = self._buffers(wanted)
        self._runtime.write(source, x)
        described = [
            (product, launch)
            for product, y in zip(products, outputs, strict=True)
            for launch in product.kernel.launch(
                product.binary, product.tile, product.problem, source, product.weights, y
            )
        ]
        return outputs, without_repeats(described)

    def _buffers(self, wanted: Iterable[tuple[str, int]]) -> list[Buffer]:
        most = self._runtime.limits().max_buffer_bytes
        found = []
        for name, nbytes in wanted:
            room = 1 << max(8, (nbytes - 1).bit_length())
            key = (name, room if room <= most else nbytes)
            chosen = self._kept.pop(key, None)
            # Put last again: the first is the one unused for longest.
            self._kept[key] = self._runtime.upload(np.empty(key[1], np.uint8)) if chosen is None else chosen
            found.append(self._kept[key])
        oldest = list(self._kept)[: max(0, len(self._kept) - max(MOST_BUFFERS, len(found)))]
        if oldest:
            self._runtime.free([self._kept.pop(key) for key in oldest])
        return found

    def _check(self, launches: Sequence[tuple[Product, Launch]]) -> None:
        ran = self._runtime.executed_ids()
        if ran != [launch.binary.id for _, launch in launches]:
            missing = next(p for (p, launch), found in zip(launches, ran, strict=True) if found != launch.binary.id)
            raise Wrong(f"{missing.tile.text()}: the device did not run the kernel that was launched")

    def _read(self, outputs: Sequence[Buffer], products: Sequence[Product]) -> list[NDArray[np.float32]]:
        return [
            self._runtime.download(y, np.float32, (p.problem.m, p.problem.n))
            for y, p in zip(outputs, products, strict=True)
        ]


def without_repeats(launches: Sequence[tuple[Product, Launch]]) -> list[tuple[Product, Launch]]:
    """The launches without those that would write a scratch buffer with what it holds already.

    Every kernel here writes its last buffer and reads the others, so a launch equal to the one that wrote a scratch
    last, with the same inputs, changes nothing.
    """
    kept: list[tuple[Product, Launch]] = []
    wrote: dict[Scratch, tuple[object, ...]] = {}
    for product, launch in launches:
        target = launch.buffers[-1]
        if isinstance(target, Scratch):
            what = (launch.binary.id, tuple(map(_name, launch.buffers)), launch.scalars, launch.grid)
            reads_scratch = any(isinstance(buffer, Scratch) for buffer in launch.buffers[:-1])
            if not reads_scratch and wrote.get(target) == what:
                continue
            wrote[target] = what
        kept.append((product, launch))
    return kept


def _name(buffer: Buffer | Scratch) -> object:
    return buffer if isinstance(buffer, Scratch) else id(buffer)
