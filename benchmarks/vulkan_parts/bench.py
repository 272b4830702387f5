"""Device, weights and activations of a run, and interleaved rounds of what is compared."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warptile import formats, layouts
from warptile.contracts import Kernel, Launch, Problem, Tile
from warptile.proof.weights import random_blocks
from warptile.runtimes.vulkan.runtime import VulkanRuntime

COPIES = 3
SAMPLE_SECONDS = 1.5e-3
WARM_SECONDS = 0.8


@dataclass
class Arm:
    """A tile that gave the right result, its launches for each copy of the weights, and what is known of it."""

    tile: Tile
    launches: list[tuple[Launch, ...]]
    row: dict[str, Any]


class Bench:
    """Device, weights in copies, activations; results gather in `rows`."""

    def __init__(self, device: VulkanRuntime, dtype: str, n: int, k: int, end: float) -> None:
        self.device, self.dtype, self.n, self.k, self.end = device, dtype, n, k, end
        self.rows: list[dict[str, Any]] = []
        fmt = formats.by_name("Q4_K")
        drawn = random_blocks(fmt, 256 * (k // 256), np.random.default_rng(0)).reshape(256, -1)
        # Rows are shuffled copies of 256 drawn ones, every one with codes of its own.
        rng = np.random.default_rng(1)
        self.blocks = drawn[rng.integers(0, 256, n)]
        codes = self.blocks.reshape(n, k // 256, 144)[:, :, 16:]
        codes[...] = rng.integers(0, 256, codes.shape, np.uint8)
        packed = layouts.pack(fmt, self.blocks.reshape(-1), n, k, device.limits().max_buffer_bytes)
        self.weights = [layouts.upload(device, packed) for _ in range(COPIES)]
        self.bytes = packed.nbytes

    def left(self) -> float:
        return self.end - time.monotonic()

    def warm(self, launches: Sequence[Launch]) -> None:
        until = time.monotonic() + WARM_SECONDS
        while time.monotonic() < until:
            self.device.execute(launches)

    def sample(self, arms: Sequence[Arm], repeats: Sequence[int]) -> list[float]:
        """Seconds of one run of each arm, all in one submission, copies in turn."""
        launches: list[Launch] = []
        owner: list[int] = []
        for index, (arm, times) in enumerate(zip(arms, repeats, strict=True)):
            for r in range(times):
                run = arm.launches[r % len(arm.launches)]
                launches += run
                owner += [index] * len(run)
        seconds = self.device.time(launches)
        return list(np.bincount(owner, weights=seconds, minlength=len(arms)) / np.asarray(repeats))

    def rounds(self, arms: Sequence[Arm], count: int, floor: Arm | None = None) -> None:
        """Interleaved rounds; each arm's row gets us, its interval, and its ratio to `floor`."""
        everyone = [*arms, floor] if floor else list(arms)
        first = self.sample(everyone, [COPIES] * len(everyone))
        repeats = [max(COPIES, min(24, COPIES * round(SAMPLE_SECONDS / s / COPIES))) for s in first]
        samples = []
        for r in range(count):
            order = np.random.default_rng(r).permutation(len(everyone))
            got = self.sample([everyone[i] for i in order], [repeats[i] for i in order])
            samples.append([got[list(order).index(i)] for i in range(len(everyone))])
        table = np.array(samples)
        for i, arm in enumerate(arms):
            arm.row["us"], arm.row["us_low"], arm.row["us_high"] = (1e6 * v for v in interval(table[:, i]))
            if floor:
                ratio = interval(table[:, i] / table[:, -1])
                arm.row["to_read"], arm.row["to_read_low"], arm.row["to_read_high"] = ratio


def interval(samples: np.ndarray) -> tuple[float, float, float]:
    """Median and its bootstrap interval."""
    rng = np.random.default_rng(0)
    medians = np.median(samples[rng.integers(0, len(samples), (1000, len(samples)))], axis=1)
    return float(np.median(samples)), float(np.quantile(medians, 0.025)), float(np.quantile(medians, 0.975))


def statistics(device: VulkanRuntime, kernel: Kernel, tile: Tile, problem: Problem) -> dict[str, Any]:
    """What the driver says and what the price says."""
    binary = device.compile(kernel.source(tile, problem, device.limits()))
    found, price = device.resources(binary), kernel.price(tile, problem, device.limits())
    row: dict[str, Any] = {
        "price_us": 1e6 * price.seconds, "price_registers": price.registers, "price_shared": price.shared_bytes,
        "workgroups": price.workgroups, "fill": price.fill, "compile_s": binary.compile_seconds,
    }  # fmt: skip
    if found is not None:
        row |= {"registers": found.registers, "shared": found.shared_bytes, "spill": found.spill_bytes}
    return row
