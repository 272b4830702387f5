"""`vulkan.mul_mm_direct`: no shared memory; decode to registers, multiply from there."""

from warptile.kernels.vulkan.mul_mm_direct.kernel import MulMmDirect
from warptile.kernels.vulkan.mul_mm_direct.tile import MulMmDirectTile

KERNEL = MulMmDirect()

__all__ = ["KERNEL", "MulMmDirectTile"]
