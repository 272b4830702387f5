"""Parts of `benchmarks/model_gpu.py`."""
