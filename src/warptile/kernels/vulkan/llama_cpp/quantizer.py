"""The pre-pass of mul_mmq: the checkout's own quantize_q8_1.comp, which cuts activations to int8 blocks of 32."""

from __future__ import annotations

from warptile.contracts import Binary, Buffer, Launch, Limits, Problem, Scratch, Source
from warptile.kernels.price_model import ceil_div
from warptile.kernels.vulkan.llama_cpp.source import OWN_WORDS, push_words, translation_unit
from warptile.llama_cpp.shader import Shader

BLOCK = 32
BLOCK_BYTES = 36
FOUR_BLOCKS = 4
LANES_A_BLOCK = 8
LEAST_GROUP = 8
BINDINGS = 2


def source(shader: Shader, limits: Limits, features: frozenset[str]) -> Source:
    """The helper that quantizes; a workgroup is a subgroup, as in the host."""
    group = max(limits.subgroup, LEAST_GROUP)
    return Source(
        language="glsl",
        text=translation_unit(shader, BINDINGS, result=False),
        constants=((0, group),),
        bindings=BINDINGS,
        scalars=len(OWN_WORDS) - 1 + len(push_words(shader)),
        workgroup=group,
        features=features,
    )


def scratch(problem: Problem) -> Scratch:
    """Where the quantized x[m, k] lies: blocks of 36 bytes, padded to whole groups of four."""
    blocks = ceil_div(problem.m * problem.k, BLOCK * FOUR_BLOCKS) * FOUR_BLOCKS
    return Scratch("llama_cpp q8_1", blocks * BLOCK_BYTES)


def launch(helper: Binary, names: tuple[str, ...], problem: Problem, x: Buffer) -> Launch:
    """The dispatch that fills `scratch(problem)` from x[m, k], fp32. names: of the shader's push constants."""
    elements = problem.m * problem.k
    groups = ceil_div(elements, BLOCK * (helper.source.workgroup // LANES_A_BLOCK))
    values = {"ne": elements, "num_blocks": groups}
    return Launch(helper, (x, scratch(problem)), (0, *(values[name] for name in names)), (groups, 1, 1))
