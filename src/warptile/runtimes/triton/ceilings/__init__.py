"""Ceilings of a torch device: read bandwidth, matrix FLOP rate, empty launch."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from statistics import median
from typing import TYPE_CHECKING

import torch

from warptile.contracts import Ceilings
from warptile.kernels.triton.program import Build

if TYPE_CHECKING:
    from warptile.runtimes.triton.backends import Backend

READ = Build(
    "warptile.runtimes.triton.ceilings.device:read",
    (("W", "*i32"), ("Out", "*i32")),
    (("TILE", 4096),),
    ("W", "words"),
    warps=8,
)
READ_DEPENDENT = dataclasses.replace(
    READ, function="warptile.runtimes.triton.ceilings.device:read_dependent", early=True
)
EMPTY = Build("warptile.runtimes.triton.ceilings.device:empty", (("Out", "*i32"),), ())
READ_BYTES = 512 << 20
SIDE = 4096
ROUNDS = 7


def pure_read(backend: Backend, build: Build = READ) -> Callable[[torch.Tensor], None]:
    """What enqueues a kernel that only reads words i32[..]; build: READ, or READ_DEPENDENT, whose launches overlap."""
    read = backend.build(build, "0" * 7 + "1" + "0" * 56, None)
    out = torch.zeros(1, dtype=torch.int32, device=backend.device)
    tile = dict(build.constants)["TILE"]

    def enqueue(words: torch.Tensor) -> None:
        count = words.numel()
        read((-(-count // tile), 1, 1), words, out, count)

    return enqueue


def measure(backend: Backend) -> Ceilings:
    """Bytes/s of a kernel that only reads 512 MB; FLOP/s of the library's fp16 matmul of side 4096 (fp32 where there
    is no card); seconds of a kernel that does nothing. Medians of seven."""
    card = backend.device.type == "cuda"
    nbytes, side = (READ_BYTES, SIDE) if card else (1 << 20, 64)
    words = torch.zeros(nbytes // 4, dtype=torch.int32, device=backend.device)
    out = torch.zeros(1, dtype=torch.int32, device=backend.device)
    left = torch.ones((side, side), dtype=torch.float16 if card else torch.float32, device=backend.device)
    read = pure_read(backend)
    empty = backend.build(EMPTY, "0" * 7 + "1" + "0" * 56, None)

    def seconds(work: object) -> float:
        return median(backend.time([work] * (ROUNDS + 2))[2:])

    reading = seconds(lambda: read(words))
    multiplying = seconds(lambda: torch.mm(left, left))
    nothing = seconds(lambda: empty((1, 1, 1), out))
    return Ceilings(nbytes / reading, 2 * side**3 / multiplying, nothing)


__all__ = ["EMPTY", "READ", "READ_DEPENDENT", "measure", "pure_read"]
