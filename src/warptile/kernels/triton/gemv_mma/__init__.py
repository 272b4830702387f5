"""`triton.gemv_mma`."""

from warptile.kernels.triton.gemv_mma.kernel import KERNEL

__all__ = ["KERNEL"]
