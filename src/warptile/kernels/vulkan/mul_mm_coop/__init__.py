"""`vulkan.mul_mm_coop`: the device's matrix units, with weights decoded once a block or once a warp."""

from warptile.kernels.vulkan.mul_mm_coop.kernel import MulMmCoop
from warptile.kernels.vulkan.mul_mm_coop.tile import MulMmCoopTile

KERNEL = MulMmCoop()

__all__ = ["KERNEL", "MulMmCoopTile"]
