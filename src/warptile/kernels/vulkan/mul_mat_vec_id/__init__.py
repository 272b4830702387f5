"""`vulkan.mul_mat_vec_id`: `vulkan.mul_mat_vec` on one slot at a time."""

from warptile.kernels.vulkan.mul_mat_vec_id.kernel import MulMatVecId, MulMatVecIdTile

KERNEL = MulMatVecId()

__all__ = ["KERNEL", "MulMatVecIdTile"]
