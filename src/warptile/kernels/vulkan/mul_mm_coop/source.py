"""The translation units of `vulkan.mul_mm_coop`: a tile's constants, decoders, the bodies beside this file."""

from __future__ import annotations

from importlib import resources

from warptile import formats
from warptile.contracts import Limits, Problem, Source
from warptile.kernels.price_model import ceil_div
from warptile.kernels.vulkan import abi
from warptile.kernels.vulkan.mul_mm_coop import shared
from warptile.kernels.vulkan.mul_mm_coop.tile import CHUNK, MulMmCoopTile
from warptile.layouts import Layout
from warptile.layouts.octets import has_nibbles, octet_glsl
from warptile.layouts.scale_words import scale_words_glsl

_FP16 = "GL_EXT_shader_explicit_arithmetic_types_float16"
_STORAGE16 = "GL_EXT_shader_16bit_storage"
_EXTENSIONS = (
    "GL_KHR_cooperative_matrix",
    "GL_KHR_memory_scope_semantics",
    "GL_KHR_shader_subgroup_basic",
    "GL_EXT_shader_explicit_arithmetic_types",
    _FP16,
    _STORAGE16,
)
OWN_SCALARS = ("part_k", "part_y")
SUM_THREADS = 256


def source(tile: MulMmCoopTile, problem: Problem, limits: Limits) -> Source:
    """The kernel, and the sum of its parts where it splits k."""
    layout = formats.by_name(problem.format).layout
    y_half = problem.y_dtype == "fp16" and tile.split_k == 1
    x_half = problem.x_dtype == "fp16"
    body = _read("half.glsl")
    body += _read("half_registers.comp" if tile.weights == "registers" else "half_shared.comp")
    text = abi.translation_unit(
        layout.glsl() + octet_glsl(layout) + scale_words_glsl(layout),
        _constants(tile, layout) + _macros(tile, layout, x_half, y_half, limits.matrix_order) + body,
        x_type="uvec4" if x_half else "vec4",
        y_type="float16_t" if y_half else "float",
        extensions=_EXTENSIONS,
        own_scalars=OWN_SCALARS,
    )
    return Source(
        language="glsl",
        text=text,
        constants=(),
        bindings=3,
        scalars=abi.SHARED_SCALARS + len(OWN_SCALARS),
        workgroup=tile.workgroup,
        subgroup=tile.subgroup,
        features=features(problem),
        helpers=(sum_of_parts(tile, problem),) if tile.split_k > 1 else (),
    )


def features(problem: Problem) -> frozenset[str]:
    """Device features that the kernel needs."""
    return frozenset({"coopmat", "fp16"} | ({"storage16"} if problem.y_dtype == "fp16" else set()))


def decodes_nibbles(layout: Layout) -> bool:
    """Whether weights are a line over codes of four bits, which are decoded where they lie in the octet's word."""
    return has_nibbles(layout) and layout.codebook is None


def sum_vector(tile: MulMmCoopTile) -> int:
    """Neighbours along n that one invocation of the sum takes."""
    return 4 if tile.weights == "registers" else 1


def sum_of_parts(tile: MulMmCoopTile, problem: Problem) -> Source:
    """The pass after a split k: y[m, row0 + n] = the sum over parts of part[p][m][n]."""
    vector, half = sum_vector(tile), problem.y_dtype == "fp16"
    macros = (
        f"#define PARTS {tile.split_k}u\n#define VECTOR {vector}u\n#define PART_VECTOR {_vector('float', vector)}\n"
        f"#define Y_VECTOR {_vector('float16_t' if half else 'float', vector)}\n"
    )
    text = abi.translation_unit(
        "",
        macros + _read("sum_parts.comp"),
        x_type="float",
        y_type="float16_t" if half else "float",
        extensions=(_FP16, _STORAGE16) if half else (),
    )
    return Source("glsl", text, (), 3, abi.SHARED_SCALARS, SUM_THREADS)


def _constants(tile: MulMmCoopTile, layout: Layout) -> str:
    """A tile's numbers and what follows from them, as GLSL constants."""
    m, n, k = tile.matrix_sides
    owners, sets = (tile.workgroup, 1) if tile.weights == "block" else (tile.subgroup, tile.warps)
    rows = tile.tile_n if tile.weights == "block" else tile.matrices_n * n
    octets = next((o for o in (4, 2) if rows * (tile.k_chunk // CHUNK) * 4 // o >= owners), 1)
    numbers: dict[str, int | bool] = {
        "THREADS": tile.workgroup,
        "SUBGROUP": tile.subgroup,
        "MATRIX_M": m,
        "MATRIX_N": n,
        "MATRIX_K": k,
        "WARPS_N": tile.warps_n,
        "WARPS_M": tile.warps_m,
        "MATRICES_N": tile.matrices_n,
        "MATRICES_M": tile.matrices_m,
        "TILE_N": tile.tile_n,
        "TILE_M": tile.tile_m,
        "K_CHUNK": tile.k_chunk,
        "PREFETCH": tile.prefetch,
        "M_FIRST": tile.first == "m",
        "POOL": shared.pool_bytes(tile, layout.groups_per_chunk) // 16,
        "X_EACH": ceil_div(tile.tile_m * tile.k_chunk // 8, tile.workgroup),
        "W_OWNERS": owners,
        "W_SETS": sets,
        "W_ROWS": rows,
        "OCTETS": octets,
        "W_EACH": ceil_div(rows * (tile.k_chunk // CHUNK) * 4 // octets, owners),
        "S_EACH": ceil_div(tile.tile_n * (tile.k_chunk // CHUNK), tile.workgroup),
    }
    return "".join(
        f"const bool {name} = {str(value).lower()};\n"
        if isinstance(value, bool)
        else f"const uint {name} = {value}u;\n"
        for name, value in numbers.items()
    )


def _macros(tile: MulMmCoopTile, layout: Layout, x_half: bool, y_half: bool, order: str) -> str:
    """What the bodies choose by preprocessor: types, the layout's groups and how its codes become weights."""
    fp16_decode = tile.decode in ("fp16", "subnormal")
    # A code minus its offset is exact in fp16, so the offset leaves m out of the fp16 decode. Nothing is taken off
    # subnormal codes: there it stays in m.
    own_offset = layout.offset if tile.decode == "fp16" else 0
    minimum = layout.has_m and not own_offset
    groups = layout.groups_per_chunk
    none = "vec2(0.0)" if groups == 2 else "0.0"
    rows_first = order == "rows"
    macros = {
        "X_HALF": int(x_half),
        "Y_TYPE": "float16_t" if y_half else "float",
        "Y_VECTOR": _vector("float16_t" if y_half else "float", 4),
        "GROUPS_A_CHUNK": groups,
        "SCALE_M(c)": "(c).m" if minimum else none,
        "CODEBOOK": int(not layout.affine),
        "CODE_ZERO": f"{1024 + own_offset}.0hf",
        "DECODE_FP16": int(fp16_decode),
        "SUBNORMAL": int(tile.decode == "subnormal"),
        "NIBBLES": int(decodes_nibbles(layout)),
        "BUFFERS": tile.buffers,
        "SUM_TYPE": "float" if tile.accumulator == "fp32" else "float16_t",
        "WIDE_SUMS(x)": _converted("float", tile.accumulator == "fp32"),
        "Y_SUMS(x)": _converted("float16_t" if y_half else "float", (tile.accumulator == "fp16") == y_half),
        "EACH_SUM(X)": " ".join(f"X({i}u, {j}u)" for i in range(tile.matrices_m) for j in range(tile.matrices_n)),
        "ROW_STEP": "2u" if rows_first else "4u",
        "COLUMN_STEP": "4u" if rows_first else "2u",
    }
    return "".join(f"#define {name} {value}\n" for name, value in macros.items())


def _converted(scalar: str, same: bool) -> str:
    return "(x)" if same else f"coopmat<{scalar}, gl_ScopeSubgroup, MATRIX_M, MATRIX_N, gl_MatrixUseAccumulator>(x)"


def _vector(scalar: str, width: int) -> str:
    if width == 1:
        return scalar
    return {"float": "vec", "float16_t": "f16vec"}[scalar] + str(width)


def _read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
