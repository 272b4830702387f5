"""Block sizes of the tensor types a GGUF file can name."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class TensorType:
    """One ggml tensor type: `block_size` elements are stored in `block_bytes` bytes."""

    type_id: int
    name: str
    block_size: int
    block_bytes: int

    @property
    def quantized(self) -> bool:
        """Whether elements share scales, that is, whether a block holds more than one."""
        return self.block_size > 1


_ROWS = (
    (0, "F32", 1, 4),
    (1, "F16", 1, 2),
    (2, "Q4_0", 32, 18),
    (3, "Q4_1", 32, 20),
    (6, "Q5_0", 32, 22),
    (7, "Q5_1", 32, 24),
    (8, "Q8_0", 32, 34),
    (10, "Q2_K", 256, 84),
    (11, "Q3_K", 256, 110),
    (12, "Q4_K", 256, 144),
    (13, "Q5_K", 256, 176),
    (14, "Q6_K", 256, 210),
    (16, "IQ2_XXS", 256, 66),
    (17, "IQ2_XS", 256, 74),
    (18, "IQ3_XXS", 256, 98),
    (19, "IQ1_S", 256, 50),
    (20, "IQ4_NL", 32, 18),
    (21, "IQ3_S", 256, 110),
    (22, "IQ2_S", 256, 82),
    (23, "IQ4_XS", 256, 136),
    (24, "I8", 1, 1),
    (25, "I16", 1, 2),
    (26, "I32", 1, 4),
    (27, "I64", 1, 8),
    (28, "F64", 1, 8),
    (29, "IQ1_M", 256, 56),
    (30, "BF16", 1, 2),
    (34, "TQ1_0", 256, 54),
    (35, "TQ2_0", 256, 66),
    (39, "MXFP4", 32, 17),
    (40, "NVFP4", 64, 36),
    (41, "Q1_0", 128, 18),
    (42, "Q2_0", 64, 18),
    (142, "PQ2_0", 128, 34),
    (143, "PTQ1_0", 128, 28),
)

TENSOR_TYPES = MappingProxyType({row[0]: TensorType(*row) for row in _ROWS})
"""Type id -> TensorType. Source: ggml's type traits; ids 142 and 143 from the ternary forks that define them."""

_BY_NAME = MappingProxyType({kind.name: kind for kind in TENSOR_TYPES.values()})


def type_name(type_id: int) -> str:
    """The type's name, or `type ID` where the id is not known."""
    kind = TENSOR_TYPES.get(type_id)
    return kind.name if kind else f"type {type_id}"


def type_by_name(name: str) -> TensorType | None:
    """The type of that name, None where there is none."""
    return _BY_NAME.get(name)
