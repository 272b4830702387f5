"""`triton.gemm_int8`."""

from warptile.kernels.triton.gemm_int8.kernel import KERNEL

__all__ = ["KERNEL"]
