"""warptile: finds, proves and serves the fastest quantized-matmul tile for a GGUF model on a GPU."""

__version__ = "0.1.0"
