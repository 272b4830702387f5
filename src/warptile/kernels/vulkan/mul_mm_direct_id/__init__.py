"""`vulkan.mul_mm_direct_id`: `vulkan.mul_mm_direct` on rows sorted by expert."""

from warptile.kernels.vulkan.mul_mm_direct_id.kernel import MulMmDirectId, MulMmDirectIdTile

KERNEL = MulMmDirectId()

__all__ = ["KERNEL", "MulMmDirectIdTile"]
