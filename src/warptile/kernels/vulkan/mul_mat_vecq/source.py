"""The translation units of `vulkan.mul_mat_vecq`, and the pre-pass that quantizes activations for "scratch"."""

from __future__ import annotations

from importlib import resources

from warptile import formats
from warptile.contracts import Binary, Buffer, Launch, Limits, Problem, Scratch, Source
from warptile.kernels.price_model import ceil_div
from warptile.kernels.vulkan import abi, int_dot
from warptile.kernels.vulkan.mul_mat_vecq.rules import features
from warptile.kernels.vulkan.mul_mat_vecq.tile import CHUNK, MulMatVecqTile
from warptile.layouts import Layout
from warptile.layouts.wide_words import wide_words_glsl

MOST_UNROLLED = 4
"""Steps up to which the loop along k is unrolled, so that a compiler can issue later loads first."""

_QUANTIZE_THREADS = 64
_MOST_ACROSS = 32768
_SCRATCH_VECTORS = 3
_SUBGROUP = ("GL_KHR_shader_subgroup_basic",)


def source(tile: MulMatVecqTile, problem: Problem, limits: Limits) -> Source:
    """The kernel for this k, and its pre-pass where x is staged in scratch memory."""
    layout = formats.by_name(problem.format).layout
    shuffle = tile.sums == "shuffle"
    decoder = layout.glsl() + layout.glsl_int8() + wide_words_glsl(layout, tile.load_n)
    shared = tile.staging == "shared"
    # The quantizer reads x as vec4: only where this kernel runs it.
    quantizer = _read("quantize.glsl") if shared else "struct XChunk { uvec4 codes[2]; uvec2 tail; };\n"
    if shared and _eight_lanes(tile, limits):
        quantizer += _read("quantize_lanes.glsl")
    text = abi.translation_unit(
        decoder,
        _constants(tile, problem, limits)
        + _macros(tile, layout, problem, limits)
        + int_dot.DOT[tile.dot]
        + quantizer
        + _read("mul_mat_vecq.comp"),
        x_type="vec4" if shared else "uvec4",
        extensions=(
            *_SUBGROUP,
            *(("GL_KHR_shader_subgroup_shuffle",) if shuffle else ()),
            *int_dot.EXTENSIONS[tile.dot],
        ),
    )
    return Source(
        language="glsl",
        text=text,
        constants=(),
        bindings=3,
        scalars=abi.SHARED_SCALARS,
        workgroup=tile.workgroup,
        subgroup=limits.subgroup,
        features=features(tile),
        helpers=() if shared else (_quantizer(),),
    )


def scratch(problem: Problem) -> Scratch:
    """Where the pre-pass leaves x[m, k]: u32[m, k / 32, 12]."""
    return Scratch("q8_1_sums", 16 * _SCRATCH_VECTORS * problem.m * (problem.k // CHUNK))


def quantize_launch(helper: Binary, problem: Problem, x: Buffer, w: Buffer) -> Launch:
    """The dispatch that fills `scratch(problem)` from x[m, k]; binding 1 is not read."""
    groups = ceil_div(problem.m * (problem.k // CHUNK), _QUANTIZE_THREADS)
    across = min(groups, _MOST_ACROSS)
    scalars = (problem.m, 0, problem.k, 0, 0, *(0,) * abi.PLANES)
    return Launch(helper, (x, w, scratch(problem)), scalars, (across, ceil_div(groups, across), 1))


def _quantizer() -> Source:
    text = abi.translation_unit("", _read("quantize.glsl") + _read("quantize.comp"), y_type="uint")
    return Source("glsl", text, (), 3, abi.SHARED_SCALARS, _QUANTIZE_THREADS)


def _eight_lanes(tile: MulMatVecqTile, limits: Limits) -> bool:
    """Whether eight neighbouring lanes quantize a chunk together."""
    return tile.sums == "shuffle" and limits.subgroup % 8 == 0


def _constants(tile: MulMatVecqTile, problem: Problem, limits: Limits) -> str:
    numbers = {
        "THREADS": tile.workgroup,
        "LANES_N": tile.lanes_n,
        "SPLIT_K": tile.split_k,
        "THREAD_N": tile.thread_n,
        "COLUMNS": tile.columns,
        "LOAD_N": tile.load_n,
        "CHUNKS": tile.chunks,
        "CHUNKS_K": problem.k // CHUNK,
        "SUBGROUP": limits.subgroup,
    }
    shuffled = str(tile.sums == "shuffle").lower()
    return "".join(f"const uint {name} = {value}u;\n" for name, value in numbers.items()) + (
        f"const bool SHUFFLED = {shuffled};\n"
    )


def _macros(tile: MulMatVecqTile, layout: Layout, problem: Problem, limits: Limits) -> str:
    # Codes below 128 are signed bytes as they are: their offset leaves with the sum of x, as a whole number.
    plain = layout.codebook is None and layout.codes.bits < 8
    macros = {
        "X_SHARED": int(tile.staging == "shared"),
        "EIGHT_LANES": int(_eight_lanes(tile, limits)),
        "PARTIAL_SUMS": int(tile.partials(limits.subgroup) > 1),
        "SHUFFLE_SUMS": int(tile.sums == "shuffle" and tile.lanes_n < limits.subgroup),
        "PREFETCH": tile.prefetch,
        "GROUPS": layout.groups_per_chunk,
        "HAS_MINIMUM": int(layout.signed_minimum),
        "ZERO_POINT": layout.offset if plain else 0,
        "CODES4(c, i)": "int(codes4(c, i))" if plain else "codes_s4(c, i)",
        "UNROLL": "[[unroll]]" if tile.steps(problem.k) <= MOST_UNROLLED else "[[dont_unroll]]",
    }
    return "".join(f"#define {name} {value}\n" for name, value in macros.items())


def _read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
