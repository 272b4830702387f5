"""`triton.gemm_id`."""

from warptile.kernels.triton.gemm_id.kernel import KERNEL

__all__ = ["KERNEL"]
