"""What direct kernels share: the register tile's GLSL, its rules and the numbers its price counts.

A lane holds thread_m x thread_n sums in registers and reads weights and activations straight from global memory. Rows
of w are fetched load_n at a time (`Layout.glsl(load_n)`); x_access says how activations reach the lanes:

- "direct": every lane reads what it needs; neighbouring lanes read the same address.
- "shuffle": eight lanes read a row's chunk of 32, four elements each, and `subgroupShuffle` hands them round.
- "shuffle64": four lanes read it, eight elements each as 64-bit words: fewer loads again.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources

from warptile import formats
from warptile.contracts import Binary, BrokenRule, Buffer, DeviceWeights, InvalidTile, Launch, Limits, Problem, Source
from warptile.kernels.vulkan import abi, experts

CHUNK = 32
X_ACCESS = ("direct", "shuffle", "shuffle64")
LOAD_N = (1, 2, 4)
# A shuffled chunk is read by eight lanes, or four: a subgroup must hold one chunk at least.
SMALLEST_SHUFFLING_SUBGROUP = 8
MOST_ACCUMULATORS = 256

_VECTORS = {1: "float", 2: "vec2", 4: "vec4"}
_FEATURES = {"direct": (), "shuffle": ("subgroup_shuffle",), "shuffle64": ("subgroup_shuffle", "int64")}
_EXTENSIONS = {
    "subgroup_shuffle": ("GL_KHR_shader_subgroup_basic", "GL_KHR_shader_subgroup_shuffle"),
    "int64": ("GL_EXT_shader_explicit_arithmetic_types_int64",),
}


def features(x_access: str) -> frozenset[str]:
    """Device features an x_access needs."""
    return frozenset(_FEATURES[x_access])


def widest_load(n: int, thread_n: int) -> int:
    """Largest load_n that divides both the problem's n and the lane's thread_n."""
    return max(width for width in LOAD_N if n % width == 0 and thread_n % width == 0)


def translation_unit(
    problem: Problem,
    subgroup: int,
    thread_n: int,
    thread_m: int,
    load_n: int,
    x_access: str,
    own: dict[str, int | bool],
    body: str,
    grouped: tuple[str, str] | None = None,
) -> str:
    """GLSL of a kernel whose `body` uses the register tile; own: its further constants by name. grouped: order and
    entry of a grouped kernel (see `experts.decoder`)."""
    numbers: dict[str, int | bool] = {
        "THREAD_N": thread_n,
        "THREAD_M": thread_m,
        "LOAD_N": load_n,
        "SUBGROUP": subgroup,
        **own,
    }
    constants = "".join(
        f"const bool {name} = {str(value).lower()};\n"
        if isinstance(value, bool)
        else f"const uint {name} = {value}u;\n"
        for name, value in numbers.items()
    )
    elements = ", ".join(f"acc[(a) + {e}u]" for e in range(load_n))
    macros = (
        f"#define X_ACCESS_{x_access.upper()}\n#define YVector {_VECTORS[load_n]}\n#define Y_ELEMENTS(a) {elements}\n"
    )
    tile = resources.files(__package__).joinpath("register_tile.glsl").read_text(encoding="utf-8")
    decoder = formats.by_name(problem.format).layout.glsl(load_n)
    extensions = tuple(name for feature in _FEATURES[x_access] for name in _EXTENSIONS[feature])
    if grouped is None:
        return abi.translation_unit(decoder, constants + macros + tile + body, extensions=extensions)
    return abi.translation_unit(
        experts.decoder(decoder, *grouped),
        constants + macros + tile + body,
        bindings=experts.BINDINGS[grouped[0]],
        extensions=extensions,
        own_scalars=experts.OWN_SCALARS,
    )


def broken_rules(
    problem: Problem,
    limits: Limits,
    lanes_n: int,
    workgroup: int,
    thread_n: int,
    thread_m: int,
    load_n: int,
    x_access: str,
) -> list[BrokenRule]:
    """Rules of the register tile; lanes_n: lanes of the workgroup that lie along n."""
    broken: list[BrokenRule] = []

    def rule(holds: bool, text: str, numbers: str, well_formed: bool = False) -> None:
        if not holds:
            broken.append(BrokenRule(text, numbers, well_formed))

    rule(lanes_n >= 1, "lanes along n >= 1", f"{lanes_n}")
    rule(thread_n >= 1 and thread_m >= 1, "rows a lane >= 1", f"thread_n {thread_n}, rows of x {thread_m}")
    rule(
        thread_n * thread_m <= MOST_ACCUMULATORS,
        f"thread_n * rows of x <= {MOST_ACCUMULATORS} accumulators",
        f"{thread_n} * {thread_m} = {thread_n * thread_m}",
    )
    rule(load_n in LOAD_N, "load_n is 1, 2 or 4", f"{load_n}")
    rule(x_access in X_ACCESS, f"x_access is one of {', '.join(X_ACCESS)}", x_access)
    if broken:
        return broken
    rule(thread_n % load_n == 0, "thread_n % load_n = 0", f"{thread_n} % {load_n} = {thread_n % load_n}")
    rule(problem.n % load_n == 0, "n % load_n = 0", f"{problem.n} % {load_n} = {problem.n % load_n}")
    rule(problem.k % CHUNK == 0, f"k % {CHUNK} = 0", f"{problem.k} % {CHUNK} = {problem.k % CHUNK}")
    rule(not problem.grouped, "experts = 1: one dense matmul", f"experts {problem.experts}")
    dtypes = f"x {problem.x_dtype}, y {problem.y_dtype}"
    rule(problem.x_dtype == problem.y_dtype == "fp32", "x and y are fp32", dtypes)
    rule(
        workgroup <= limits.max_workgroup,
        "threads a workgroup <= the device's most",
        f"{workgroup} > {limits.max_workgroup}",
        well_formed=True,
    )
    for feature in sorted(features(x_access)):
        rule(limits.has(feature), f"x_access {x_access} needs {feature}", limits.name, well_formed=True)
    if x_access != "direct":
        rule(
            limits.subgroup >= SMALLEST_SHUFFLING_SUBGROUP,
            f"x_access {x_access} needs a subgroup of {SMALLEST_SHUFFLING_SUBGROUP} lanes",
            f"subgroup {limits.subgroup}",
            well_formed=True,
        )
        rule(
            lanes_n % limits.subgroup == 0,
            f"x_access {x_access} needs whole subgroups along n",
            f"{lanes_n} % {limits.subgroup} = {lanes_n % limits.subgroup}",
        )
    return broken


def grid_rule(grid: tuple[int, int, int], limits: Limits) -> list[BrokenRule]:
    """The rule that a grid (workgroups a dimension) fits the device."""
    if all(have <= most for have, most in zip(grid, limits.max_grid, strict=True)):
        return []
    return [BrokenRule("workgroups a dimension <= the device's most", f"{grid} > {limits.max_grid}", True)]


def check_slices(weights: DeviceWeights, load_n: int) -> None:
    """Raise InvalidTile where a slice starts or ends inside a group of load_n rows."""
    for piece in weights.slices:
        if piece.rows % load_n or piece.row0 % load_n:
            raise InvalidTile("a slice's rows are a multiple of load_n", f"rows {piece.rows}, load_n {load_n}")


def source(text: str, workgroup: int, subgroup: int, x_access: str) -> Source:
    """The source of a register-tile kernel: a required subgroup size only where lanes hand activations round."""
    return Source(
        language="glsl",
        text=text,
        constants=(),
        bindings=3,
        scalars=abi.SHARED_SCALARS,
        workgroup=workgroup,
        subgroup=subgroup if x_access != "direct" else None,
        features=features(x_access),
    )


def launches(
    binary: Binary,
    problem: Problem,
    x: Buffer,
    w: DeviceWeights,
    y: Buffer,
    load_n: int,
    grid: Callable[[int, int], tuple[int, int, int]],
) -> tuple[Launch, ...]:
    """One dispatch a weight slice over grid(rows, m) workgroups. Raises InvalidTile as `check_slices`."""
    check_slices(w, load_n)
    return tuple(
        Launch(binary, (x, piece.buffer, y), abi.scalars(problem, piece), grid(piece.rows, problem.m))
        for piece in w.slices
    )
