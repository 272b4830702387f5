"""`vulkan.llama_cpp`: llama.cpp's own shaders, read from the user's checkout.

There is no `KERNEL` here: the kernel is made from a checkout, `of_checkout(checkout)`, and handed to who needs it.
"""

from warptile.kernels.vulkan.llama_cpp.kernel import LlamaCpp, of_checkout
from warptile.kernels.vulkan.llama_cpp.tile import LlamaCppTile

__all__ = ["LlamaCpp", "LlamaCppTile", "of_checkout"]
