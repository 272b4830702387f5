"""Activations as integer kernels take them: quantized in blocks, on the host.

Blocks are structured arrays whose bytes are ggml's; `.view(np.uint8)` gives them.
"""

from warptile.activations.q8_0 import Q8_0, dequantize_q8_0, quantize_q8_0
from warptile.activations.q8_1 import Q8_1, dequantize_q8_1, quantize_q8_1
from warptile.activations.q8_1_tiles import (
    Q8_1_D2S6,
    Q8_1_D4,
    Q8_1_DS4,
    dequantize_q8_1_d2s6,
    dequantize_q8_1_d4,
    dequantize_q8_1_ds4,
    quantize_q8_1_d2s6,
    quantize_q8_1_d4,
    quantize_q8_1_ds4,
)
from warptile.activations.q8_k import Q8_K, dequantize_q8_k, quantize_q8_k

__all__ = [
    "Q8_0",
    "Q8_1",
    "Q8_1_D2S6",
    "Q8_1_D4",
    "Q8_1_DS4",
    "Q8_K",
    "dequantize_q8_0",
    "dequantize_q8_1",
    "dequantize_q8_1_d2s6",
    "dequantize_q8_1_d4",
    "dequantize_q8_1_ds4",
    "dequantize_q8_k",
    "quantize_q8_0",
    "quantize_q8_1",
    "quantize_q8_1_d2s6",
    "quantize_q8_1_d4",
    "quantize_q8_1_ds4",
    "quantize_q8_k",
]
