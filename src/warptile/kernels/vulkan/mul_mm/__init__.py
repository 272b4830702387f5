"""`vulkan.mul_mm`: decode to shared memory, multiply from there; llama.cpp's parameter space."""

from warptile.kernels.vulkan.mul_mm.kernel import MulMm
from warptile.kernels.vulkan.mul_mm.tile import MulMmTile

KERNEL = MulMm()

__all__ = ["KERNEL", "MulMmTile"]
