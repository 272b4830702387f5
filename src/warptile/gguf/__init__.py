"""GGUF files: a bounded reader of header and tensor directory, and memory-mapped tensor data.

Source of the file format: the GGUF specification, versions 2 and 3, little-endian.
"""

from warptile.gguf.escape import escaped
from warptile.gguf.file import GGUFFile, open_gguf
from warptile.gguf.header import TensorInfo
from warptile.gguf.types import TENSOR_TYPES, TensorType, type_by_name, type_name

__all__ = [
    "TENSOR_TYPES",
    "GGUFFile",
    "TensorInfo",
    "TensorType",
    "escaped",
    "open_gguf",
    "type_by_name",
    "type_name",
]
