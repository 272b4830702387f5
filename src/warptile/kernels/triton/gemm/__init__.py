"""`triton.gemm`."""

from warptile.kernels.triton.gemm.kernel import KERNEL

__all__ = ["KERNEL"]
