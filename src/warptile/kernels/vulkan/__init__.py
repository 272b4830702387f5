"""GLSL kernels, one folder each; `abi.py` holds what they share."""
