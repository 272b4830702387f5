"""`vulkan.mul_mat_vec`: few rows of x; the workgroup shares k."""

from warptile.kernels.vulkan.mul_mat_vec.kernel import MulMatVec
from warptile.kernels.vulkan.mul_mat_vec.tile import MulMatVecTile

KERNEL = MulMatVec()

__all__ = ["KERNEL", "MulMatVecTile"]
