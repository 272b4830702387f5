"""Triton tiles compiled for a card that is not here: what its compiler gives them, against the price on paper.

Nothing is run, so nothing here is ever a time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warptile import kernels
from warptile.contracts import BrokenRule, CandidateRejected, Kernel, Limits, Price, Problem, Tile, UnusableInput
from warptile.kernels.price_model import residency
from warptile.kernels.triton.matrix import architecture
from warptile.kernels.triton.program import Program
from warptile.runtimes.triton.assembly import MachineCode, read_amd, read_nvidia
from warptile.runtimes.triton.compiling import gpu_target, machine_code, program_key
from warptile.runtimes.triton.require import require_triton
from warptile.search import rank


@dataclass(frozen=True)
class BuildReport:
    """One device function of a tile.

    shared_bytes: a workgroup's, as Triton allocates them. resident_threads, limited_by: what one unit holds with the
    compiled registers and shared bytes.
    """

    function: str
    code: MachineCode
    shared_bytes: int
    resident_threads: int
    limited_by: str

    @property
    def spills_in_loop(self) -> bool:
        """Whether a K loop touches memory of a thread's own."""
        return self.code.loop_accesses > 0


@dataclass(frozen=True)
class TileReport:
    """A tile compiled for a card. broken: rules it breaks (then nothing was compiled). failed: what the compiler
    refused, "" where it did not."""

    kernel: str
    tile: str
    origin: str
    price: Price | None
    broken: tuple[BrokenRule, ...] = ()
    builds: tuple[BuildReport, ...] = ()
    failed: str = ""

    @property
    def good(self) -> bool:
        """Valid, compiled, and no spill in a K loop."""
        return bool(self.builds) and not any(b.spills_in_loop for b in self.builds)

    def to_json(self) -> dict[str, Any]:
        """One plain dictionary."""
        return {
            **dataclasses.asdict(self),
            "builds": [{**dataclasses.asdict(b), "spills_in_loop": b.spills_in_loop} for b in self.builds],
            "good": self.good,
        }


@dataclass(frozen=True)
class OfflineReport:
    """Tiles of one problem compiled for one card."""

    device: str
    architecture: str
    compiler: str
    problem: Problem
    tiles: tuple[TileReport, ...]

    @property
    def exit_code(self) -> int:
        """0 where every tile is good, else 1."""
        return 0 if self.tiles and all(t.good for t in self.tiles) else 1

    def to_json(self) -> dict[str, Any]:
        """One plain dictionary."""
        head = {"device": self.device, "architecture": self.architecture, "compiler": self.compiler}
        return {**head, "problem": dataclasses.asdict(self.problem), "tiles": [t.to_json() for t in self.tiles]}


def shipped_tiles(
    problem: Problem, limits: Limits, only: Sequence[Kernel] | None = None
) -> list[tuple[Kernel, Tile, str]]:
    """(kernel, tile, origin) of what stands for a problem where nothing was measured.

    Each kernel's stock tile and its tile of least price, each once. only: these kernels, default all Triton's.
    """
    found: dict[str, tuple[Kernel, Tile, str]] = {}
    for kernel in kernels.for_runtime("triton") if only is None else only:
        stock = kernel.stock(problem, limits)
        if stock is not None and not kernel.broken_rules(stock, problem, limits):
            found.setdefault(stock.text(), (kernel, stock, "stock"))
        if ranked := rank(problem, limits, [kernel]):
            best = ranked[0].tile
            found.setdefault(best.text(), (kernel, best, "least price"))
    return list(found.values())


def compile_tiles(
    problem: Problem, limits: Limits, tiles: Sequence[tuple[Kernel, Tile, str]], cache: Path | None = None
) -> OfflineReport:
    """Compile each (kernel, tile, origin) for the card of `limits` and read its machine code.

    cache: Triton's folder for what it has compiled. Raises MissingExtra without Triton, UnusableInput for a kernel of
    another runtime or a card without a compiler here.
    """
    triton = require_triton()
    name = architecture(limits).name
    if limits.runtime not in ("cuda", "hip") or not name.startswith(("sm_", "gfx")):
        raise UnusableInput(f"Triton has no compiler for {limits.name} through {limits.runtime}")
    if triton.knobs.runtime.interpret:
        raise UnusableInput("TRITON_INTERPRET=1 is set: Triton interprets its kernels then and compiles none")
    for kernel, _, _ in tiles:
        if kernel.runtime != "triton":
            raise UnusableInput(f"kernel {kernel.name} is not Triton's: only Triton compiles without a device")
    reports = tuple(_compile(kernel, tile, origin, problem, limits, cache) for kernel, tile, origin in tiles)
    return OfflineReport(limits.name, name, f"triton {triton.__version__}", problem, reports)


def _compile(
    kernel: Kernel, tile: Tile, origin: str, problem: Problem, limits: Limits, cache: Path | None
) -> TileReport:
    broken = tuple(kernel.broken_rules(tile, problem, limits))
    if broken:
        return TileReport(kernel.name, tile.text(), origin, None, broken)
    price = kernel.price(tile, problem, limits)
    program = Program.parse(kernel.source(tile, problem, limits))
    target = gpu_target(limits.runtime, architecture(limits).name)
    reports = []
    try:
        key = program_key(program.builds, program.enqueue, target, {})
        for build in program.builds:
            compiled = machine_code(build, target, key, cache).kernel
            code = read_nvidia(compiled.asm["cubin"]) if limits.runtime == "cuda" else read_amd(compiled.asm["amdgcn"])
            shared = int(compiled.metadata.shared)
            # A warp-specialized function has more warps than it was asked for.
            warps = int(getattr(compiled.metadata, "num_warps", build.warps))
            resident = residency(limits, warps * limits.subgroup, shared, code.registers)
            function = build.function.rpartition(":")[2]
            reports.append(BuildReport(function, code, shared, resident.threads, resident.limited_by))
    except CandidateRejected as error:
        return TileReport(kernel.name, tile.text(), origin, price, failed=str(error))
    return TileReport(kernel.name, tile.text(), origin, price, builds=tuple(reports))


def lines(report: OfflineReport) -> list[tuple[str, str]]:
    """The report as (what, value) lines."""
    found = [
        ("device", f"{report.device} ({report.architecture}, compiled by {report.compiler}; nothing was run)"),
        ("matmul", f"{report.problem.text()} in {report.problem.x_dtype}"),
    ]
    for tile in report.tiles:
        found.append(("tile", f"{tile.tile} ({tile.origin})"))
        found += [("broken rule", rule.text()) for rule in tile.broken]
        if tile.failed:
            found.append(("compiler", tile.failed))
        for build in tile.builds:
            found += _build_lines(build, tile.price)
    if not report.tiles:
        found.append(("tile", "no valid tile"))
    return found


def _build_lines(build: BuildReport, price: Price | None) -> list[tuple[str, str]]:
    code = build.code
    spills = (
        f"{code.spilled_registers} registers, {code.spill_bytes} bytes a thread; "
        f"{code.local_accesses} accesses, {code.loop_accesses or 'none'} in the K loop"
    )
    paper = price if price is not None and price.registers else None
    expected = "" if paper is None else f" (paper: {paper.registers}{', spills' if paper.spills else ''})"
    shared = "" if paper is None else f" (paper: {paper.shared_bytes})"
    held = "" if paper is None else f" (paper: {paper.resident_threads}, {paper.limited_by})"
    return [
        ("function", f"{build.function}: {code.matrix} matrix instructions, {code.loops} K loops"),
        ("registers", f"{code.registers} a thread{expected}"),
        ("spills", spills if code.spill_bytes or code.spilled_registers or code.local_accesses else "none"),
        ("shared bytes", f"{build.shared_bytes} a workgroup{shared}"),
        ("threads resident", f"{build.resident_threads} a unit, limited by {build.limited_by}{held}"),
    ]
