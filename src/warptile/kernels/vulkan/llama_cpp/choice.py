"""Which pipelines the host of a checkout has for a format on a device, and which one a matmul takes."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from dataclasses import dataclass

from warptile.contracts import Limits, Problem
from warptile.gguf import type_by_name
from warptile.llama_cpp.host import HostDevice, Pipeline

SMALL_UP_TO, MEDIUM_UP_TO = 32, 64
"""Rows or tokens up to which the host takes its small, then its medium pipeline (`matmul_tile_selector`, and
`ggml_vk_guess_matmul_pipeline` before it), where it uses three."""

UNALIGNED_UP_TO = 8
"""Rows or tokens up to which it takes the pipeline that reads any k (`ggml_vk_mul_mat_q_f16`)."""

_NAME = re.compile(r"matmul_(?!id)(?P<format>\w+?)_(?P<kind>q8_1|f32)(?P<rest>\w*)$")
_TYPE_CONSTANT = 12


@dataclass(frozen=True)
class Choice:
    """The pipeline a matmul takes.

    size: "s", "m" or "l"; plain: for any k; aligned: for k a multiple of its `align`.
    """

    size: str
    plain: Pipeline
    aligned: Pipeline | None

    def for_problem(self, problem: Problem) -> Pipeline:
        """The pipeline by the problem's shape."""
        aligned = self.aligned
        large = problem.n > UNALIGNED_UP_TO and problem.m > UNALIGNED_UP_TO
        return aligned if aligned is not None and large and problem.k % aligned.align == 0 else self.plain


def host_device(limits: Limits) -> HostDevice:
    """The host's view of a device, its cooperative matrices left out: their shaders are not run here."""
    return dataclasses.replace(HostDevice.of(limits), coopmat=None, coopmat_int=None)


def format_of(pipeline: Pipeline) -> tuple[str, str]:
    """(format, "mul_mm" or "mul_mmq") of a dense pipeline that reads fp32 activations; ("", "") of any other."""
    match = _NAME.match(pipeline.shader)
    if match is None or "cm1" in match["rest"] or "cm2" in match["rest"] or "coopmat" in match["rest"]:
        return "", ""
    return match["format"], "mul_mmq" if match["kind"] == "q8_1" else "mul_mm"


def reads(pipeline: Pipeline, format_name: str) -> bool:
    """Whether a pipeline reads weights of a format: by its shader's name, or by the type it is specialized for."""
    name, _ = format_of(pipeline)
    if name == "quant":
        kind = type_by_name(format_name)
        constants = pipeline.constants
        return kind is not None and len(constants) > _TYPE_CONSTANT and constants[_TYPE_CONSTANT] == kind.type_id
    return name == format_name.lower()


def choices(pipelines: Iterable[Pipeline], format_name: str, shader: str) -> dict[str, Choice]:
    """The pipelines of a format and shader by size; of two that differ in what they sum in, the default one (fp16)."""
    mine = [p for p in pipelines if reads(p, format_name) and format_of(p)[1] == shader and p.size]
    if any("f16acc" in p.shader for p in mine):
        mine = [p for p in mine if "f16acc" in p.shader]
    found: dict[str, Choice] = {}
    for size in "sml":
        plain = next((p for p in mine if p.size == size and not _is_aligned(p)), None)
        if plain is not None:
            aligned = next((p for p in mine if p.size == size and _is_aligned(p)), None)
            found[size] = Choice(size, plain, aligned)
    return found


def size_for(problem: Problem, sizes: Iterable[str]) -> str:
    """Which of the sizes in use a matmul takes."""
    there = [size for size in "sml" if size in set(sizes)]
    smaller = min(problem.n, problem.m)
    if len(there) == 1 or smaller <= SMALL_UP_TO:
        return there[0]
    return there[1] if len(there) == 2 or smaller <= MEDIUM_UP_TO else there[2]


def _is_aligned(pipeline: Pipeline) -> bool:
    return pipeline.align > 1
