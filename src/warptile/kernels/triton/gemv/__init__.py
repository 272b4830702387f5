"""`triton.gemv`."""

from warptile.kernels.triton.gemv.kernel import KERNEL

__all__ = ["KERNEL"]
