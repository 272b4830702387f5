"""From a build to its lowered form, and to machine code, with or without the device."""

from __future__ import annotations

import hashlib
import importlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warptile.contracts import CompileFailed, DoesNotFit, UnusableInput
from warptile.kernels.triton.program import Box, Build
from warptile.runtimes.keys import binary_id
from warptile.runtimes.triton.assembler import own_assembler
from warptile.runtimes.triton.checked_cache import checked_cache
from warptile.runtimes.triton.hashing import settle
from warptile.runtimes.triton.marked import REVISION, marked_file
from warptile.runtimes.triton.require import require_triton

_ID_CONSTANT = "BUILD_ID"
_SETTLED: set[int] = set()


@dataclass(frozen=True)
class Compiled:
    """A build's machine code. kernel: Triton's own object; positions: where the launch arguments go among all."""

    build: Build
    kernel: Any
    names: tuple[str, ...]
    positions: tuple[int, ...]


def imported(name: str) -> Any:
    """The object of "MODULE:NAME". Raises UnusableInput."""
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UnusableInput(f"{name} cannot be imported: {error}") from None


def gpu_target(backend: str, architecture: str) -> Any:
    """Triton's target for ("cuda", "sm_90") or ("hip", "gfx1200")."""
    require_triton()
    from triton.backends.compiler import GPUTarget

    if backend == "cuda":
        return GPUTarget("cuda", int(architecture.removeprefix("sm_")), 32)
    return GPUTarget("hip", architecture, 64 if architecture.startswith("gfx9") else 32)


def _source(build: Build, identity: int) -> Any:
    if build.language == "gluon":
        from triton.experimental.gluon._runtime import GluonASTSource as ASTSource
    else:
        from triton.compiler import ASTSource

    function = imported(build.function)
    settle(function, _SETTLED)
    pointers, constants = dict(build.pointers), dict(build.constants) | {_ID_CONSTANT: identity}
    boxes = {box.name: _box_type(box) for box in build.boxes}
    signature, attributes = {}, {}
    for index, name in enumerate(function.arg_names):
        signature[name] = "constexpr" if name in constants else boxes.get(name) or pointers.get(name, "i32")
        if name in build.aligned and name not in constants:
            attributes[(index,)] = [["tt.divisibility", 16]]
    missing = (set(constants) | set(pointers) | set(boxes)) - set(function.arg_names)
    if missing:
        raise UnusableInput(f"{build.function} has no argument {', '.join(sorted(missing))}")
    return ASTSource(fn=function, signature=signature, constexprs=constants, attrs=attributes)


def lowering_source(build: Build) -> Any:
    """Triton's source of a build with id 0; its `hash` covers the text of the device function and of what it calls,
    types and constants. Raises CompileFailed."""
    return _checked(build, lambda: _source(build, 0))


def _box_type(box: Box) -> str:
    layout = f"swizzle_byte_width={box.swizzle}, element_bitwidth={box.bits}, rank={len(box.shape)}"
    return f"tensordesc<{box.type}{list(box.shape)},NVMMASharedLayout({layout})>"


def _options(build: Build) -> dict[str, Any]:
    options: dict[str, Any] = {"num_warps": build.warps, "num_stages": build.stages}
    if build.early:
        options["launch_pdl"] = True
    if build.registers:
        options["maxnreg"] = build.registers
    return options


def lowered(build: Build, target: Any) -> str:
    """Triton IR of a build, with id 0 and without locations: equal for sources that differ in comments alone."""
    from triton._C.libtriton import ir
    from triton.compiler.compiler import make_backend

    backend = make_backend(target)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    options = backend.parse_options(_options(build))
    functions = backend.get_codegen_implementation(options)
    module = _checked(
        build,
        lambda: _source(build, 0).make_ir(target, options, functions, backend.get_module_map(), context),
    )
    text = module.str_nodebug()
    return re.sub(r"\s*loc\([^)]*\)|^#loc.*$", "", text, flags=re.MULTILINE)


def program_key(builds: Sequence[Build], enqueue: str, target: Any, extra: Mapping[str, Any]) -> str:
    """SHA-256, hexadecimal, of the builds' lowered forms, warps, stages, registers, target, the launching function and
    `extra`."""
    parts = [
        [lowered(b, target), b.warps, b.stages, *([b.registers] if b.registers else []), *_marks(b)] for b in builds
    ]
    text = json.dumps([parts, enqueue, str(target), dict(extra)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _marks(build: Build) -> list[int]:
    return [REVISION] if build.marked else []


def machine_code(build: Build, target: Any, key: str, cache: Path | None) -> Compiled:
    """Compile a build that writes `binary_id(key)`. cache: Triton's folder for what it has compiled, None for its own.

    Raises CompileFailed with the compiler's first telling line, DoesNotFit where shared memory does not suffice.
    """
    triton = require_triton()
    source = _source(build, binary_id(key))
    names = tuple(source.fn.arg_names)
    taken = {name for name, _ in build.constants} | {_ID_CONSTANT}
    positions = tuple(i for i, name in enumerate(names) if name not in taken)
    with cached_in(cache), own_assembler():
        kernel = _checked(build, lambda: triton.compile(source, target=target, options=_options(build)))
        if build.marked:
            path = marked_file(kernel.asm["ptx"], Path(triton.knobs.cache.dir))
            options = _options(build) | {"ir_override": str(path)}
            kernel = _checked(build, lambda: triton.compile(source, target=target, options=options))
    return Compiled(build, kernel, names, positions)


@contextmanager
def cached_in(cache: Path | None) -> Iterator[None]:
    """Triton keeps what it compiles in a folder, for the whole process, and takes from it only what is whole
    (`checked_cache`); None leaves that as it is."""
    if cache is None:
        yield
        return
    triton = require_triton()
    with triton.knobs.cache.scope():
        triton.knobs.cache.dir = str(cache)
        triton.knobs.cache.manager_class = checked_cache()
        yield


def _checked(build: Build, work: Any) -> Any:
    try:
        return work()
    except (KeyboardInterrupt, MemoryError):
        raise
    except Exception as error:
        kind = type(error).__name__
        if kind == "OutOfResources":
            raise DoesNotFit("the compiled kernel fits the device", str(error)) from None
        root: BaseException = error
        while root.__cause__ is not None:
            root = root.__cause__
        lines = [line.strip() for line in str(root).splitlines() if line.strip()]
        telling = next((line for line in reversed(lines) if line.strip("^ ")), "no message")
        raise CompileFailed(f"{build.function}: {kind}: {telling[:300]}") from error
