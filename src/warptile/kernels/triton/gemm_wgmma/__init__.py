"""`triton.gemm_wgmma`."""

from warptile.kernels.triton.gemm_wgmma.kernel import KERNEL

__all__ = ["KERNEL"]
