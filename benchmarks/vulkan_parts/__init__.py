"""The parts of `benchmarks/vulkan_gpu.py`."""
