"""Workloads: the matmuls a model or a shape file asks for."""

from warptile.workloads.load import load
from warptile.workloads.model import from_gguf
from warptile.workloads.shape_files import from_shapes, shape_names

__all__ = ["from_gguf", "from_shapes", "load", "shape_names"]
