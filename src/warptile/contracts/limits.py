"""What a card can hold, as one runtime sees it."""

from __future__ import annotations

from dataclasses import dataclass

MATRIX_ORDERS = ("rows", "columns")
"""Known orders of a 16x16x16 fp16 cooperative matrix in a subgroup of 32, lane 4g + j, elements in neighbouring pairs.

B: elements 0, 1 at k = 2j, 2j + 1 of column g, 2, 3 at 8 further along k, 4..7 the same 8 columns further.
Accumulator: elements 0, 1 at columns 2j, 2j + 1 of row g; "rows": 2, 3 at 8 rows further, 4..7 the same 8 columns
further; "columns": 2, 3 at 8 columns further, 4..7 the same 8 rows further.
"""


ASSUMED_CACHE_BYTES = 128 << 20
"""What a device whose cache is not known is taken to have: more than the last-level caches of the cards it stands
for, so that nothing cached is timed unseen."""


@dataclass(frozen=True)
class RegisterBand:
    """Up to `registers` 32-bit registers a thread, `threads` can be resident on one unit."""

    registers: int
    threads: int


@dataclass(frozen=True)
class CooperativeMatrix:
    """One supported cooperative-matrix shape: a[m, k] * b[k, n] + c[m, n] (VkCooperativeMatrixPropertiesKHR)."""

    m: int
    n: int
    k: int
    a_type: str
    c_type: str


@dataclass(frozen=True)
class Limits:
    """Limits of one device through one runtime. A unit is a core, compute unit or multiprocessor.

    Zero in `registers_per_unit`, `threads_per_unit`, `units` or a bandwidth means: not known, and a price
    that would need it leaves it out. `kind`: "gpu" or "software" (every thread runs on the host's processor).
    shared_bytes: a workgroup's most; shared_bytes_per_unit: the pool residency is counted against.
    live: whether this machine can run on it (a data file cannot).
    arrangement: how this runtime's kernels want packed weights to lie ("rows", "quads"; see `layouts.pack`).
    activations: type of x and y that a model's matmuls are tuned for on this runtime ("fp32", "fp16").
    matrix_order: one of `MATRIX_ORDERS`, or "" where a probe on the device found another order or none ran.
    """

    name: str
    runtime: str
    vendor: str
    kind: str
    subgroup: int
    subgroup_sizes: tuple[int, ...]
    shared_bytes: int
    shared_bytes_per_unit: int
    max_workgroup: int
    max_grid: tuple[int, int, int]
    max_buffer_bytes: int
    buffer_alignment: int = 64
    units: int = 0
    threads_per_unit: int = 0
    workgroups_per_unit: int = 0
    registers_per_unit: int = 0
    max_registers_per_thread: int = 0
    register_bands: tuple[RegisterBand, ...] = ()
    memory_bytes: int = 0
    cache_bytes: int = 0
    read_gb_per_s: float = 0.0
    fp32_tflops: float = 0.0
    fp16_tflops: float = 0.0
    features: frozenset[str] = frozenset()
    cooperative_matrices: tuple[CooperativeMatrix, ...] = ()
    live: bool = False
    arrangement: str = "rows"
    activations: str = "fp32"
    matrix_order: str = ""

    @property
    def cache_to_exceed(self) -> int:
        """Bytes that must be read between two runs for the second to find nothing cached: the cache's, or
        `ASSUMED_CACHE_BYTES` where that is not known."""
        return self.cache_bytes or ASSUMED_CACHE_BYTES

    def has(self, feature: str) -> bool:
        """Whether a feature is present.

        fp16, int8, int64, int_dot, int_dot_accelerated, coopmat, subgroup_arithmetic, subgroup_shuffle, storage16,
        storage8, robust (bounds of buffers checked where a kernel asks for it).
        """
        return feature in self.features
