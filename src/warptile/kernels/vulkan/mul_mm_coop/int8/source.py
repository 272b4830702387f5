"""The translation units of int8 operands: the product, the pre-pass that quantizes x, the sum of parts."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources

from warptile import formats
from warptile.contracts import Limits, Problem, Source
from warptile.kernels.price_model import ceil_div
from warptile.kernels.vulkan import abi
from warptile.kernels.vulkan.mul_mm_coop.int8.plan import Plan
from warptile.kernels.vulkan.mul_mm_coop.source import sum_of_parts
from warptile.kernels.vulkan.mul_mm_coop.tile import CHUNK, MulMmCoopTile
from warptile.layouts import Layout
from warptile.layouts.scale_words import scale_words_glsl
from warptile.layouts.six_bit import six_bit_glsl

_FP16 = "GL_EXT_shader_explicit_arithmetic_types_float16"
_STORAGE16 = "GL_EXT_shader_16bit_storage"
_EXTENSIONS = (
    "GL_KHR_cooperative_matrix",
    "GL_KHR_memory_scope_semantics",
    "GL_KHR_shader_subgroup_basic",
    "GL_EXT_shader_explicit_arithmetic_types",
)
_HALVES = (_FP16, _STORAGE16)
OWN_SCALARS = ("part_k", "part_y", "x_m", "x_k", "x_scales", "x_sums")
QUANTIZE_SCALARS = ("x_m", "x_k", "x_scales", "x_sums")
QUANTIZE_THREADS = 64


def source(tile: MulMmCoopTile, problem: Problem, limits: Limits) -> Source:
    """The product; its helpers are the pre-pass and, where k is split, the sum of parts."""
    layout = formats.by_name(problem.format).layout
    plan = Plan.of(tile, layout)
    half = problem.y_dtype == "fp16" and tile.split_k == 1
    decoder = layout.glsl() + layout.glsl_int8() + scale_words_glsl(layout)
    body = _read("int8.glsl") + _read("raw_tiles.comp" if tile.scales == "raw" else "scaled_matrices.comp")
    text = abi.translation_unit(
        decoder + (six_bit_glsl(layout) if plan.six_bit else ""),
        _constants(plan, layout, limits) + _macros(plan, layout, half, limits) + body,
        x_type="uvec4" if plan.unit_bytes == 16 else "uvec2",
        y_type="float16_t" if half else "float",
        extensions=_EXTENSIONS + (_HALVES if half or plan.columns else ()),
        own_scalars=OWN_SCALARS,
    )
    helpers = (_quantize(plan, problem),)
    return Source(
        language="glsl",
        text=text,
        constants=(),
        bindings=3,
        scalars=abi.SHARED_SCALARS + len(OWN_SCALARS),
        workgroup=tile.workgroup,
        subgroup=tile.subgroup,
        features=features(plan, problem),
        helpers=(*helpers, sum_of_parts(tile, problem)) if tile.split_k > 1 else helpers,
    )


def features(plan: Plan, problem: Problem) -> frozenset[str]:
    """Device features that the kernel needs."""
    needed = {"coopmat", "int8"} | ({"fp16"} if plan.columns else set())
    return frozenset(needed | ({"fp16", "storage16"} if problem.y_dtype == "fp16" else set()))


def minimum_k(tile: MulMmCoopTile, limits: Limits) -> int:
    """k of the device's fp16 matrix that minimums are multiplied on: of the same m and n, 16 or 8; 0 without."""
    m, n, _ = tile.matrix_sides
    listed = {c.k for c in limits.cooperative_matrices if (c.m, c.n, c.a_type, c.c_type) == (m, n, "fp16", "fp32")}
    return next((k for k in (16, 8) if k in listed), 0)


def _quantize(plan: Plan, problem: Problem) -> Source:
    half = problem.x_dtype == "fp16"
    numbers = {"THREADS": QUANTIZE_THREADS, "X_BLOCK": plan.tile.x_block, "K_CHUNK": plan.tile.k_chunk}
    numbers |= {"FOLD": plan.fold, "SPAN": plan.span}
    macros = {"X_HALF": int(half), "SUM_WORDS": plan.sum_words, "COLUMNS": plan.columns}
    text = abi.translation_unit(
        "",
        _defined(numbers, macros) + _read("quantize.comp"),
        x_type="uvec2" if half else "vec4",
        y_type="uint",
        own_scalars=QUANTIZE_SCALARS,
    )
    return Source("glsl", text, (), 3, abi.SHARED_SCALARS + len(QUANTIZE_SCALARS), QUANTIZE_THREADS)


def _constants(plan: Plan, layout: Layout, limits: Limits) -> str:
    tile = plan.tile
    m, n, k = tile.matrix_sides
    owners = tile.workgroup if tile.weights == "block" else tile.subgroup
    leaving = 0 if tile.scales == "raw" else 4 * tile.warps * m * n
    numbers: dict[str, int | bool] = {
        "THREADS": tile.workgroup,
        "SUBGROUP": tile.subgroup,
        "MATRIX_M": m,
        "MATRIX_N": n,
        "MATRIX_K": k,
        "WARPS": tile.warps,
        "WARPS_M": tile.warps_m,
        "MATRICES_N": tile.matrices_n,
        "MATRICES_M": tile.matrices_m,
        "TILE_N": tile.tile_n,
        "TILE_M": tile.tile_m,
        "K_CHUNK": tile.k_chunk,
        "X_BLOCK": tile.x_block,
        "SPAN": plan.span,
        "FOLD": plan.fold,
        "FOLDS": plan.folds,
        "GAPPED": plan.gapped,
        "PAD": tile.pad,
        "PREFETCH": tile.prefetch,
        "M_FIRST": tile.first == "m",
        "W_OWNERS": owners,
        "W_SETS": plan.weight_sets,
        "W_ROWS": plan.weight_rows,
        "W_POOL": max(plan.weight_bytes(), leaving) // plan.unit_bytes,
        "W_EACH": ceil_div(plan.weight_rows * (tile.k_chunk // CHUNK), owners),
        "X_EACH": ceil_div(tile.tile_m * tile.k_chunk // plan.unit_bytes, tile.workgroup),
        "X_SCALE_EACH": ceil_div(tile.tile_m * (tile.k_chunk // plan.span), tile.workgroup),
        "X_SUM_EACH": max(1, ceil_div(tile.tile_m * plan.sum_words, tile.workgroup)),
        "MINIMUM_K": minimum_k(tile, limits),
        "HAS_MINIMUM": plan.minimum,
    }
    return _defined(numbers, {"CODE_OFFSET": layout.offset if plan.unsigned else 0})


def _macros(plan: Plan, layout: Layout, y_half: bool, limits: Limits) -> str:
    tile = plan.tile
    two = layout.groups_per_chunk == 2
    zero = "vec2(0.0)" if two else "0.0"
    rows_first = limits.matrix_order == "rows"
    y = "float16_t" if y_half else "float"
    raw = tile.scales == "raw"
    return _defined(
        {},
        {
            "UNIT": "uvec4" if plan.unit_bytes == 16 else "uvec2",
            "UNIT_BYTES": plan.unit_bytes,
            "GROUPS_A_CHUNK": layout.groups_per_chunk,
            "MINIMUM(c)": "(c).m" if plan.minimum else zero,
            "CODES(c, i)": "codes4(c, i)" if plan.unsigned else "uint(codes_s4(c, i))",
            "STAGES_SCALES": int(not raw),
            "SIX_BIT": int(plan.six_bit),
            "FOLD_IS_HALF": int(plan.fold < CHUNK),
            "X_SHARED": int(tile.activations == "shared"),
            "SHARED_BY_BLOCK": int(tile.activations == "shared" or tile.weights == "block"),
            "SUM_WORDS": plan.sum_words,
            "SUM_ROW": plan.sum_row_words,
            "COLUMNS": plan.columns,
            "MINIMUM_ROW": plan.minimum_row_words,
            # A software device keeps matrices in memory anyway, and would compile for minutes what is unrolled.
            "FOLDED": "dont_unroll" if limits.kind == "software" else "unroll",
            "LANES": int(tile.scales == "lanes"),
            "ROW_STEP": "2u" if rows_first else "4u",
            "COLUMN_STEP": "4u" if rows_first else "2u",
            "Y_TYPE": y,
            "Y_SUMS(x)": "(x)"
            if not y_half
            else f"coopmat<{y}, gl_ScopeSubgroup, MATRIX_M, MATRIX_N, gl_MatrixUseAccumulator>(x)",
            "EACH_SUM(X)": " ".join(f"X({i}u, {j}u)" for i in range(tile.matrices_m) for j in range(tile.matrices_n)),
        },
    )


def _defined(numbers: Mapping[str, int | bool], macros: Mapping[str, int | str]) -> str:
    constants = "".join(
        f"const bool {name} = {str(value).lower()};\n"
        if isinstance(value, bool)
        else f"const uint {name} = {value}u;\n"
        for name, value in numbers.items()
    )
    return "".join(f"#define {name} {value}\n" for name, value in macros.items()) + constants


def _read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
