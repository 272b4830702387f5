"""`triton.gemv_trits`."""

from warptile.kernels.triton.gemv_trits.kernel import KERNEL

__all__ = ["KERNEL"]
