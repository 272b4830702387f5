"""In which order a driver keeps a cooperative matrix in the lanes of a subgroup, asked of the device itself."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from warptile.contracts.errors import CandidateRejected
from warptile.contracts.launch import Launch, Source
from warptile.contracts.limits import MATRIX_ORDERS, CooperativeMatrix, Limits

if TYPE_CHECKING:
    from warptile.runtimes.vulkan.runtime import VulkanRuntime

_FEATURES = frozenset({"coopmat", "fp16"})
_MATRIX = CooperativeMatrix(16, 16, 16, "fp16", "fp32")
_SUBGROUP = 32


def matrix_order(runtime: VulkanRuntime) -> str:
    """The one of `MATRIX_ORDERS` that the device keeps; "" where it keeps another or has no such matrix."""
    held = held_elements(runtime)
    return "" if held is None else named(held)


def held_elements(runtime: VulkanRuntime) -> NDArray[np.int32] | None:
    """i32[2, 32, 8]: B's column * 16 + k, the accumulator's row * 16 + column, of each lane's elements; else None."""
    if not _possible(runtime.limits()):
        return None
    text = files(__package__).joinpath("matrix_order.comp").read_text()
    source = Source("glsl", text, (), 3, 0, _SUBGROUP, subgroup=_SUBGROUP, features=_FEATURES)
    try:
        binary = runtime.compile(source)
    except CandidateRejected:
        return None
    buffers = [
        runtime.upload(np.arange(256).astype(np.float16)),
        runtime.upload(np.arange(256, dtype=np.float32)),
        runtime.upload(np.full(512, -1, np.int32)),
    ]
    try:
        runtime.execute([Launch(binary, tuple(buffers), (), (1, 1, 1))])
        return runtime.download(buffers[2], np.int32, (2, _SUBGROUP, 8))
    finally:
        runtime.free(buffers)


def named(held: NDArray[np.int32]) -> str:
    """The order that `held_elements` shows; "" for one without a name."""
    lane, e = np.arange(_SUBGROUP)[:, None], np.arange(8)[None]
    g, j = lane // 4, lane % 4
    b = (g + 8 * (e // 4)) * 16 + 2 * j + e % 2 + 8 * (e // 2 % 2)
    first, second = 8 * (e // 2 % 2), 8 * (e // 4)
    sums = {
        "rows": (g + first) * 16 + 2 * j + e % 2 + second,
        "columns": (g + second) * 16 + 2 * j + e % 2 + first,
    }
    if not np.array_equal(held[0], b):
        return ""
    return next((name for name in MATRIX_ORDERS if np.array_equal(held[1], sums[name])), "")


def _possible(limits: Limits) -> bool:
    sizes = limits.subgroup_sizes or (limits.subgroup,)
    return _SUBGROUP in sizes and limits.features >= _FEATURES and _MATRIX in limits.cooperative_matrices
