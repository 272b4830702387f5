"""`vulkan.llama_cpp`: the shaders llama.cpp multiplies with, compiled from the user's checkout, under any tuple."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from warptile.contracts import (
    Arithmetic,
    Binary,
    BrokenRule,
    Buffer,
    CompileFailed,
    DeviceWeights,
    InvalidTile,
    Launch,
    Limits,
    Price,
    Problem,
    Scratch,
    Source,
    Tile,
)
from warptile.kernels.price_model import ceil_div
from warptile.kernels.vulkan.llama_cpp import choice as choosing
from warptile.kernels.vulkan.llama_cpp import pricing, quantizer
from warptile.kernels.vulkan.llama_cpp import space as tiles
from warptile.kernels.vulkan.llama_cpp.choice import Choice
from warptile.kernels.vulkan.llama_cpp.source import OWN_WORDS, push_words, translation_unit, written_push_words
from warptile.kernels.vulkan.llama_cpp.tile import SHADERS, LlamaCppTile, tile_of
from warptile.kernels.vulkan.warp_tile import warp_device_rules, warp_problem_rules
from warptile.llama_cpp.checkout import Checkout
from warptile.llama_cpp.host import Host, Pipeline
from warptile.llama_cpp.rules import NAMES, loads_a_thread, tuple_rules
from warptile.llama_cpp.shader import Shader
from warptile.llama_cpp.variants import Variants

STEP = 32
"""Elements along k a step of mul_mm takes with block-quantized weights."""

MMQ_STEP = 128
"""Elements along k a step of mul_mmq takes."""

FP16_SUMS_BELOW = 2048
"""Sums of this many products or more, in fp16, have no error bound."""

MOST_SUMS = 128
"""Of a thread: what llama.cpp's own tuples reach; compilers unroll them all."""

ROUNDINGS_A_CHUNK = 4
BINDINGS = 3


class LlamaCpp:
    """Computes y[m, n] = sum_k x[m, k] * w[n, k] from weights as the file holds them, as the checkout's host runs it.

    The pipeline is the one the host has for the format on the device with its cooperative matrices turned off: integer
    dot products where they are accelerated, sums in fp16 where the device has it. K is not split.
    """

    name = "vulkan.llama_cpp"
    runtime = "vulkan"
    arrangement = "file"
    tile_type: type[Tile] = LlamaCppTile

    def __init__(self, checkout: Checkout) -> None:
        self.checkout = checkout
        self._chosen: dict[Limits, tuple[Pipeline, ...]] = {}
        self._choices: dict[tuple[Limits, str, str], dict[str, Choice]] = {}
        self._shaders: dict[str, Shader] = {}
        self._loads: dict[tuple[Limits, str], frozenset[tuple[str, Fraction]]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return of_checkout, (self.checkout,)

    @functools.cached_property
    def host(self) -> Host:
        """The checkout's host code."""
        return Host(self.checkout)

    @functools.cached_property
    def variants(self) -> Variants:
        """The checkout's compiled shaders."""
        return Variants(self.checkout)

    def choices(self, format_name: str, limits: Limits, shader: str) -> dict[str, Choice]:
        """The host's pipelines of a format by size ("s", "m", "l"); empty where it has none with that shader."""
        key = (limits, format_name, shader)
        if key not in self._choices:
            if limits not in self._chosen:
                self._chosen[limits] = tuple(self.host.choose(choosing.host_device(limits)).pipelines)
            self._choices[key] = choosing.choices(self._chosen[limits], format_name, shader)
        return self._choices[key]

    def shader_for(self, format_name: str, limits: Limits) -> str:
        """The shader the host multiplies this format with: "mul_mmq" where it has one, else "mul_mm"."""
        return "mul_mmq" if self.choices(format_name, limits, "mul_mmq") else "mul_mm"

    def pipeline(self, shader: str, problem: Problem, limits: Limits) -> Pipeline | None:
        """The host's pipeline for a matmul; None where it has none for the format."""
        found = self.choices(problem.format, limits, shader)
        return found[choosing.size_for(problem, found)].for_problem(problem) if found else None

    def names(self, pipeline: Pipeline) -> dict[int, str]:
        """Names of a pipeline's specialization constants by id."""
        return self._shader(pipeline).names()

    def sharing(self, pipeline: Pipeline, limits: Limits) -> tuple[Pipeline, ...]:
        """The host's pipelines on a device that take their tuple from the same variable."""
        self.choices("", limits, "mul_mm")
        return tuple(p for p in self._chosen[limits] if p.variable == pipeline.variable)

    def space(self, problem: Problem, limits: Limits) -> Iterator[Tile]:
        shader = self.shader_for(problem.format, limits)
        pipeline = self.pipeline(shader, problem, limits)
        if pipeline is None:
            return iter(())
        return iter(tiles.space(problem, limits, shader, *self._build(pipeline)))

    def stock(self, problem: Problem, limits: Limits) -> Tile | None:
        shader = self.shader_for(problem.format, limits)
        pipeline = self.pipeline(shader, problem, limits)
        if pipeline is None:
            return None
        numbers = self._numbers(pipeline)
        # A number the shader is not given (BK of mul_mmq, TK of old versions) is what its text has.
        values = [numbers.get(name, STEP if name == "BK" else 1) for name in NAMES]
        operands, sums = self._build(pipeline)
        return tile_of(values, shader, operands, sums)

    def broken_rules(self, tile: Tile, problem: Problem, limits: Limits) -> list[BrokenRule]:
        own = _own(tile)
        if own.shader not in SHADERS:
            return [BrokenRule(f"shader is one of {', '.join(SHADERS)}", f"shader {own.shader}")]
        pipeline = self.pipeline(own.shader, problem, limits)
        if pipeline is None:
            rule = "the checkout's host has a pipeline for the format here"
            return [BrokenRule(rule, f"none of {own.shader} for {problem.format}")]
        broken = tuple_rules(dict(zip(NAMES, own.numbers, strict=True)), pairs=own.shader == "mul_mm")
        if own.tile_k != STEP:
            broken.append(BrokenRule(f"BK is {STEP} with block-quantized weights", f"BK {own.tile_k}"))
        if own.subgroup > 0 and own.accumulators > MOST_SUMS:
            broken.append(BrokenRule(f"at most {MOST_SUMS} sums a thread", f"{own.accumulators}"))
        build = self._build(pipeline)
        if (own.operands, own.sums) != build:
            text = "operands and sums are those of the host's build on this device"
            broken.append(BrokenRule(text, f"{own.operands}, {own.sums}; the host has {', '.join(build)}"))
        broken += warp_problem_rules(own, problem, limits)
        if own.sums == "fp16" and problem.k >= FP16_SUMS_BELOW:
            broken.append(BrokenRule(f"sums in fp16 have an error bound below k = {FP16_SUMS_BELOW}", f"k {problem.k}"))
        if own.shader == "mul_mmq" and problem.k < MMQ_STEP:
            text = f"k >= {MMQ_STEP}: with less, mul_mmq multiplies shared memory that it never wrote"
            broken.append(BrokenRule(text, f"k {problem.k}"))
        if limits.kind == "gpu" and not limits.has("robust"):
            text = "the device checks bounds a pipeline at a time (VK_EXT_pipeline_robustness), as the shader needs"
            broken.append(BrokenRule(text, f"{limits.name} does not", well_formed=True))
        if any(value < 1 for value in own.numbers):
            return broken
        shader = self._shader(pipeline)
        reading = shader.at(self._constants(shader, own, pipeline))
        broken += self._load_rules(own, pipeline, limits)
        if reading.shared_bytes is None:
            return [*broken, BrokenRule("the shader's shared memory is understood", pipeline.shader)]
        # WARP need be no subgroup's size: without cooperative matrices these shaders only count with it.
        return broken + [b for b in warp_device_rules(own, reading.shared_bytes, limits) if "subgroup is" not in b.rule]

    def price(self, tile: Tile, problem: Problem, limits: Limits) -> Price:
        own = _own(tile)
        pipeline = self._needed(own, problem, limits)
        shader = self._shader(pipeline)
        shared = shader.at(self._constants(shader, own, pipeline)).shared_bytes or 0
        return pricing.price(own, problem, limits, shared)

    def source(self, tile: Tile, problem: Problem, limits: Limits) -> Source:
        own = _own(tile)
        pipeline = self._needed(own, problem, limits)
        shader = self._shader(pipeline)
        known = {number for number, _ in shader.constants.values()}
        features = _features(shader, limits)
        helpers: tuple[Source, ...] = ()
        if own.shader == "mul_mmq":
            helpers = (quantizer.source(self._quantizer(shader), limits, features - {"int_dot"}),)
        return Source(
            language="glsl",
            text=translation_unit(shader, BINDINGS),
            constants=tuple((i, v) for i, v in enumerate(self._constants(shader, own, pipeline)) if i in known),
            bindings=BINDINGS,
            scalars=len(OWN_WORDS) - 1 + len(push_words(shader)),
            workgroup=own.block_size,
            features=features,
            helpers=helpers,
            reads_beyond=True,
        )

    def launch(
        self, binary: Binary, tile: Tile, problem: Problem, x: Buffer, w: DeviceWeights, y: Buffer
    ) -> tuple[Launch, ...]:
        own = _own(tile)
        operand: Buffer | Scratch = x
        first: tuple[Launch, ...] = ()
        if own.shader == "mul_mmq":
            (helper,) = binary.helpers
            operand = quantizer.scratch(problem)
            first = (quantizer.launch(helper, written_push_words(helper.source.text), problem, x),)
        names = written_push_words(binary.source.text)
        return (
            *first,
            *(
                Launch(
                    binary=binary,
                    buffers=(piece.buffer, operand, y),
                    scalars=(piece.row0, *_push_values(names, problem, piece.rows)),
                    grid=(ceil_div(piece.rows, own.tile_n), ceil_div(problem.m, own.tile_m), 1),
                )
                for piece in w.slices
            ),
        )

    def boundaries(self, tile: Tile) -> tuple[int, int, int]:
        own = _own(tile)
        return own.tile_m, own.tile_n, MMQ_STEP if own.shader == "mul_mmq" else STEP

    def arithmetic(self, tile: Tile, problem: Problem) -> Arithmetic:
        """mul_mm: both operands rounded to the build's type, summed over k in order.

        mul_mmq: whole-number products of a chunk summed exactly, scaled, added in order; scales of
        weights and activations, and the activations' sum that takes a minimum off, are rounded to fp16.
        Neither is asked of NaN, Inf and large activations: the shaders clamp sums of fp16, NaN too, and the sum of a
        block's activations overflows.
        """
        own = _own(tile)
        if own.shader == "mul_mm":
            return Arithmetic(own.operands, own.operands, own.sums, problem.k, special=False)
        chunks = problem.k // quantizer.BLOCK
        return Arithmetic("fp16 scales twice", "q8_1 fp16", "int32", chunks + ROUNDINGS_A_CHUNK, special=False)

    def _load_rules(self, own: LlamaCppTile, pipeline: Pipeline, limits: Limits) -> list[BrokenRule]:
        """Rules of loading of every shader that shares the tuple's variable: formats differ in what a thread loads."""
        key = (limits, pipeline.variable)
        if key not in self._loads:
            self._loads[key] = frozenset(
                load
                for other in {p.shader: p for p in self._chosen[limits] if p.variable == pipeline.variable}.values()
                for load in loads_a_thread(self._shader(other), other.constants)
            )
        edges = {"a": ("BM", own.tile_n), "b": ("BN", own.tile_m)}
        broken: dict[str, BrokenRule] = {}
        for side, share in sorted(self._loads[key]):
            rows, (edge, size) = share * own.block_size, edges[side]
            rule = f"rows of {side} that the block loads at once divide {edge}, for every format of the tuple"
            if rows < 1 or size % rows:
                broken.setdefault(rule, BrokenRule(rule, f"{rows}, {edge} {size}"))
        return list(broken.values())

    def _needed(self, own: LlamaCppTile, problem: Problem, limits: Limits) -> Pipeline:
        pipeline = self.pipeline(own.shader, problem, limits)
        if pipeline is None:
            raise InvalidTile("the checkout's host has a pipeline for the format here", problem.format)
        return pipeline

    def _shader(self, pipeline: Pipeline) -> Shader:
        return self._named(pipeline.shader)

    def _quantizer(self, shader: Shader) -> Shader:
        """The build of the quantizer whose blocks a mul_mmq reads."""
        fours = any("block_q8_1_x4" in token.text for token in shader.tokens)
        return self._named("quantize_q8_1_x4" if fours else "quantize_q8_1")

    def _named(self, name: str) -> Shader:
        if name not in self._shaders:
            variant = self.variants.named(name)
            if variant is None:
                raise CompileFailed(f"the checkout's generator builds no shader {name}")
            self._shaders[name] = Shader(self.checkout, variant)
        return self._shaders[name]

    def _numbers(self, pipeline: Pipeline) -> dict[str, int]:
        names = self.names(pipeline)
        return {names[i]: value for i, value in enumerate(pipeline.constants) if i in names}

    def _build(self, pipeline: Pipeline) -> tuple[str, str]:
        """(operands, sums) of the pipeline's build, by its macros."""
        macros = dict(self._shader(pipeline).variant.defines)
        half = macros.get("ACC_TYPE") == "float16_t"
        return "fp16" if "FLOAT16" in macros else "fp32", "fp16" if half else "fp32"

    def _constants(self, shader: Shader, own: LlamaCppTile, pipeline: Pipeline) -> tuple[int, ...]:
        """The pipeline's specialization constants with the tile's numbers in place of its tuple's."""
        given = dict(zip(NAMES, own.numbers, strict=True))
        names = shader.names()
        return tuple(given.get(names.get(i, ""), value) for i, value in enumerate(pipeline.constants))


@functools.lru_cache(maxsize=4)
def of_checkout(checkout: Checkout) -> LlamaCpp:
    """The kernel of a checkout; one a process, so that what it has read of the checkout is read once."""
    return LlamaCpp(checkout)


def _own(tile: Tile) -> LlamaCppTile:
    if not isinstance(tile, LlamaCppTile):
        raise TypeError(f"{LlamaCpp.name} takes a LlamaCppTile, not {type(tile).__name__}")
    return tile


def _features(shader: Shader, limits: Limits) -> frozenset[str]:
    """What the build needs of a device."""
    macros = {name for name, _ in shader.variant.defines}
    needed = {"storage16", "int16"} | ({"fp16"} if "FLOAT16" in macros else set())
    if "_q8_1" in shader.variant.name:
        needed |= {"int_dot", "int8", "storage8"}
    return frozenset(needed | ({"robust"} if limits.kind == "gpu" else set()))


def _push_values(names: tuple[str, ...], problem: Problem, rows: int) -> tuple[int, ...]:
    """The shader's push constants for `rows` weight rows of a matmul that is one batch of one matrix."""
    k, tokens = problem.k, problem.m
    values = {
        "M": rows, "N": tokens, "K": k, "stride_a": k, "stride_b": k, "stride_d": problem.n,
        "batch_stride_a": rows * k, "batch_stride_b": tokens * k, "batch_stride_d": tokens * problem.n,
        "base_work_group_z": 0, "num_batches": 1, "k_split": k, "ne02": 1, "ne12": 1, "broadcast2": 1, "broadcast3": 1,
        "padded_N": tokens,
    }  # fmt: skip
    missing = [name for name in names if name not in values]
    if missing:
        raise CompileFailed(f"the shader's push constants {', '.join(missing)} are not known")
    return tuple(values[name] for name in names)
