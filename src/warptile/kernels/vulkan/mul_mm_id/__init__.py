"""`vulkan.mul_mm_id`: `vulkan.mul_mm` on rows sorted by expert."""

from warptile.kernels.vulkan.mul_mm_id.kernel import MulMmId, MulMmIdTile

KERNEL = MulMmId()

__all__ = ["KERNEL", "MulMmIdTile"]
