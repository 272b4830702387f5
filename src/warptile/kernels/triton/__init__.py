"""Kernels for CUDA and ROCm in Triton, from one source. Importing this room loads neither Triton nor torch."""
