"""Sources, packed weights on a device, and launches. Kernels describe launches; only runtimes submit them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warptile.contracts.runtime import Binary, Buffer


@dataclass(frozen=True)
class Source:
    """What a kernel hands to a runtime's compiler.

    text: one whole translation unit (for GLSL with every include already resolved).
    constants: specialization constants as (id, 32-bit value); they are part of the binary's identity.
    bindings: storage buffers the kernel binds, the executed-id buffer not counted.
    scalars: 32-bit push-constant words of the kernel's own, after the runtime's slot word.
    workgroup: threads a workgroup. subgroup: required subgroup size, None for the device's own.
    features: device features the text needs (names as in `Limits.features`).
    helpers: what else the kernel launches (a pre-pass, the sum of split-K parts), compiled with it; the binary's key
    and id cover them. reads_beyond: it reads past the end of its buffers and counts on the driver to bound that: a
    checked build leaves such reads out without a word.
    """

    language: str
    text: str
    constants: tuple[tuple[int, int], ...]
    bindings: int
    scalars: int
    workgroup: int
    subgroup: int | None = None
    features: frozenset[str] = frozenset()
    helpers: tuple[Source, ...] = ()
    reads_beyond: bool = False


@dataclass(frozen=True)
class WeightSlice:
    """Rows [row0, row0 + rows) of a packed weight, in one buffer that fits the device's range limit.

    planes: offset of each of the layout's planes inside the buffer, in 32-bit words. Of a grouped weight, all rows of
    experts [expert0, expert0 + experts), one after another `stride` words apart; planes are the first one's.
    """

    buffer: Buffer
    row0: int
    rows: int
    planes: tuple[int, ...]
    expert0: int = 0
    experts: int = 1
    stride: int = 0


@dataclass(frozen=True)
class DeviceWeights:
    """A packed weight w[n, k] on a device: one slice, or several where a buffer would be too large. Of w[experts, n, k]
    a slice holds whole experts."""

    format: str
    layout: str
    n: int
    k: int
    slices: tuple[WeightSlice, ...]
    experts: int = 1


@dataclass(frozen=True)
class Chosen:
    """Which experts the tokens of a grouped matmul take, on a device: ids i32[m, top_k], weights f32[m, top_k].

    An id outside 0 .. experts - 1 takes no expert: its row of y[m, top_k, n] is 0, and it adds nothing to a sum; no
    kernel reads weights by it. weights: None where y is not summed.
    """

    ids: Buffer
    weights: Buffer | None = None


@dataclass(frozen=True)
class Scratch:
    """A buffer of the runtime's own, named in a launch: the same (name, nbytes) is the same buffer in one execution.

    Launches of one `execute` or `time` see in it what earlier ones wrote; nothing clears it, and nothing it held
    before that call may be relied on.
    """

    name: str
    nbytes: int


@dataclass(frozen=True)
class Launch:
    """One dispatch: what runs, on which buffers, with which scalars, over how many workgroups.

    binary: the kernel's, or one of its helpers.
    """

    binary: Binary
    buffers: tuple[Buffer | Scratch, ...]
    scalars: tuple[int, ...]
    grid: tuple[int, int, int]
