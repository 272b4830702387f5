"""What a Triton kernel hands to its runtime: device functions to compile, and the host function that launches them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from warptile.contracts import Source

LANGUAGE = "triton"
ARRIVE, FREE = "// mark: arrive", "// mark: free"
"""Comments in a build's PTX that ask for what its language cannot say; see `kernels.triton.gluon_marks`."""


@dataclass(frozen=True)
class Box:
    """A tensor argument that the device copies in boxes. type: its elements' ("fp16", "i32"); shape: the box's;
    swizzle: bytes of the pattern that it lies in shared memory by, 0 for none."""

    name: str
    type: str
    shape: tuple[int, ...]
    swizzle: int

    @property
    def bits(self) -> int:
        """Bits of an element."""
        return int(self.type.lstrip("abfiptu"))


@dataclass(frozen=True)
class Build:
    """One device function to compile.

    function: "MODULE:NAME" of a `triton.jit` function with a constant BUILD_ID. pointers: its pointer arguments and
    their types ("*fp16"); every other argument that is not among the constants is i32. aligned: arguments that are
    multiples of 16 (bytes for pointers). warps, stages: Triton's num_warps and num_stages. language: "triton", or
    "gluon" for its lower-level language. boxes: arguments that are tensor descriptors. early: the launch may start
    before the one before it has ended (CUDA's programmatic dependent launch). registers: the most a thread may have, 0
    for the compiler's choice. marked: its PTX has marks.
    """

    function: str
    pointers: tuple[tuple[str, str], ...]
    constants: tuple[tuple[str, Any], ...]
    aligned: tuple[str, ...] = ()
    warps: int = 4
    stages: int = 2
    language: str = "triton"
    boxes: tuple[Box, ...] = ()
    early: bool = False
    registers: int = 0
    marked: bool = False


@dataclass(frozen=True)
class Program:
    """The builds of a kernel's tile, and "MODULE:NAME" of the function that launches them.

    That function is called as enqueue(run, buffers, scalars, grid) with what a `Launch` holds, buffers as tensors;
    `run` is a `runtimes.triton.running.Run`. It enqueues work on the current stream and never waits.
    """

    enqueue: str
    builds: tuple[Build, ...] = field(default=())

    def source(self, bindings: int, scalars: int, workgroup: int, subgroup: int) -> Source:
        """The contract's source: this program as text."""
        text = json.dumps(asdict(self), sort_keys=True)
        return Source(LANGUAGE, text, (), bindings, scalars, workgroup, subgroup)

    @classmethod
    def parse(cls, source: Source) -> Program:
        """Inverse of `source`."""
        data = json.loads(source.text)
        builds = tuple(
            Build(
                b["function"],
                tuple((name, kind) for name, kind in b["pointers"]),
                tuple((name, _frozen(value)) for name, value in b["constants"]),
                tuple(b["aligned"]),
                b["warps"],
                b["stages"],
                b["language"],
                tuple(Box(x["name"], x["type"], tuple(x["shape"]), x["swizzle"]) for x in b["boxes"]),
                b["early"],
                b["registers"],
                b["marked"],
            )
            for b in data["builds"]
        )
        return cls(data["enqueue"], builds)


def _frozen(value: Any) -> Any:
    return tuple(_frozen(v) for v in value) if isinstance(value, list) else value
