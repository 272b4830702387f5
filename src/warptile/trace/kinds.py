"""What a kernel is for, told from its name: kernels of different programs are compared by this."""

from __future__ import annotations

import re

QUANTIZED, DENSE, ATTENTION, NORM, ROTARY, ROWS, COPIES, POINTWISE, OTHER = (
    "quantized matmul",
    "dense matmul",
    "attention",
    "norm",
    "rotary",
    "row lookup",
    "copies and casts",
    "elementwise",
    "other",
)

_PATTERNS: tuple[tuple[str, str], ...] = (
    (
        QUANTIZED,
        r"mul_mat_(vec_)?q|mul_mat_id|mmvq|mul_mm|mul_mat_vec|quantize_(mmq_)?q8|q8_1|dequant|marlin|gguf|"
        r"helper of vulkan|vulkan\.|triton\.|^(gemm|gemv|gemm_int8|quantize|sum_parts)(_|$)",
    ),
    (ATTENTION, r"flash|fmha|attention|attn|^attend_|softmax|soft_max|sdpa|SDPA"),
    (NORM, r"norm|rsqrt|aten::(mean|pow)"),
    (ROTARY, r"rope|rotary|^rotate$|aten::(cos|sin)"),
    (DENSE, r"gemm|cutlass|cublas|nvjet|sgemm|hgemm|wgmma|xmma|Cijk|rocblas|mul_mat_f|mul_mat|aten::(mm|bmm|addmm)"),
    (ROWS, r"get_rows|^chosen_rows$|embedding|index_?select|gather|aten::index|vectorized_gather"),
    (COPIES, r"cpy|copy|memcpy|memset|cast|concat|CatArray|aten::(cat|clone|contiguous|to|_to_copy|expand|empty)|fill"),
    (
        POINTWISE,
        r"elementwise|^gated$|silu|gelu|add|mul|unary|binary|glu|aten::(add|mul|neg|sub|div|silu|gelu)|triton_poi",
    ),
)  # fmt: skip

_COMPILED = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _PATTERNS)


def kind_of_kernel(name: str, quantized: bool = False) -> str:
    """One of the kinds above; quantized: it is known to belong to a packed matmul."""
    if quantized:
        return QUANTIZED
    return next((kind for kind, pattern in _COMPILED if pattern.search(name)), OTHER)
