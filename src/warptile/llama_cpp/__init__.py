"""A llama.cpp checkout of the user's: what its Vulkan back end chooses, what its shaders are built with.

Nothing of llama.cpp is part of this package; every text is read from the checkout where the user has it.
"""

from warptile.llama_cpp.checkout import Checkout

__all__ = ["Checkout"]
