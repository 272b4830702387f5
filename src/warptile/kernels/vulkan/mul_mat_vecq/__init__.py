"""`vulkan.mul_mat_vecq`: few rows of x as int8 blocks, four-byte dot products, weights loaded as vectors of rows."""

from warptile.kernels.vulkan.mul_mat_vecq.kernel import MulMatVecq
from warptile.kernels.vulkan.mul_mat_vecq.tile import MulMatVecqTile

KERNEL = MulMatVecq()

__all__ = ["KERNEL", "MulMatVecqTile"]
