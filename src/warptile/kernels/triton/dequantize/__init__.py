"""`triton.dequantize`."""

from warptile.kernels.triton.dequantize.kernel import KERNEL

__all__ = ["KERNEL"]
