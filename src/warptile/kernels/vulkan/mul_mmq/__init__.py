"""`vulkan.mul_mmq`: integer dot products on quantized activations; llama.cpp's parameter space with BK_STEP."""

from warptile.kernels.vulkan.mul_mmq.kernel import MulMmq
from warptile.kernels.vulkan.mul_mmq.tile import MulMmqTile

KERNEL = MulMmq()

__all__ = ["KERNEL", "MulMmqTile"]
