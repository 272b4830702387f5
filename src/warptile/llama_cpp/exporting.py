"""`warptile export --llama-cpp`: what was measured on a checkout's shader, as a diff and the evidence for it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from warptile import __version__
from warptile.contracts import Identity, Limits, Problem, UnusableInput, Verdict
from warptile.gguf.escape import shown
from warptile.journal import Entry, from_json
from warptile.kernels.vulkan.llama_cpp import LlamaCpp, LlamaCppTile
from warptile.kernels.vulkan.llama_cpp.choice import host_device, size_for
from warptile.llama_cpp.host import HostDevice, Pipeline
from warptile.llama_cpp.patching import Change, Patch, patch
from warptile.llama_cpp.rules import NAMES
from warptile.llama_cpp.tuning import layout_name
from warptile.proof.version import PROOF_VERSION
from warptile.race.statistics import CONFIDENCE
from warptile.tables import Point, Table

SIZE_NAMES = {"s": "small", "m": "medium", "l": "large"}


@dataclass(frozen=True)
class Evidence:
    """One race behind a tuple: on which matmul, and what the proof of the tuple ran there."""

    problem: Problem
    point: Point
    shader: str
    verdict: Verdict | None


@dataclass(frozen=True)
class NewTuple:
    """A variable's tuple. before, after: its numbers; evidence: the races that it won; others: matmuls of the variable
    that were measured and for which another tuple, or the stock one, stayed.
    """

    variable: str
    size: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    pipelines: tuple[Pipeline, ...]
    evidence: tuple[Evidence, ...]
    others: tuple[Problem, ...]


@dataclass(frozen=True)
class Export:
    """The diff against the checkout's root, and the text of a pull request for it."""

    patch: Patch
    text: str
    tuples: tuple[NewTuple, ...]


def export(kernel: LlamaCpp, limits: Limits, identity: Identity, table: Table, journal: Iterable[Entry]) -> Export:
    """What the table holds of the checkout's shaders on exactly this device, driver and compiler.

    Raises UnusableInput where nothing of it was measured to be faster, or the version cannot be patched.
    """
    tuples = new_tuples(kernel, limits, identity, table, journal)
    if not tuples:
        raise UnusableInput(
            f"{shown(kernel.checkout.root)}: no tuple was measured to be faster than its own on {identity.device} with"
            " this driver: warptile tune --llama-cpp measures"
        )
    device = host_device(limits)
    changes = [Change(t.variable, t.pipelines, t.after) for t in tuples]
    made = patch(kernel.checkout, device, changes)
    return Export(made, _text(kernel, limits, device, identity, tuples, made), tuple(tuples))


def new_tuples(
    kernel: LlamaCpp, limits: Limits, identity: Identity, table: Table, journal: Iterable[Entry]
) -> list[NewTuple]:
    """One tuple a variable: of those that won, the one with most races won, then the fastest over them."""
    verdicts = _verdicts(journal, identity)
    layout = layout_name(kernel.checkout)
    won: dict[str, dict[str, list[Evidence]]] = defaultdict(lambda: defaultdict(list))
    measured: dict[str, list[Problem]] = defaultdict(list)
    for row in table.rows():
        for point in row.points if row.key.layout == layout else ():
            if point.validity.stale(identity, PROOF_VERSION):
                continue
            problem, tile = row.key.problem(point.m), LlamaCppTile.parse(point.tile)
            sizes = kernel.choices(problem.format, limits, tile.shader)
            if not sizes:
                continue
            pipeline = sizes[size_for(problem, sizes)].plain
            measured[pipeline.variable].append(problem)
            if point.outcome == "accept" and point.tile != point.stock and point.low > 1:
                found = Evidence(problem, point, pipeline.shader, verdicts.get(point.validity.artefact))
                won[pipeline.variable][point.tile].append(found)
    return [
        _tuple(kernel, limits, variable, _best(tiles), measured[variable])
        for variable, tiles in sorted(won.items())
        if variable
    ]


def _best(tiles: dict[str, list[Evidence]]) -> tuple[str, list[Evidence]]:
    def worth(item: tuple[str, list[Evidence]]) -> tuple[int, float]:
        return len(item[1]), math.prod(e.point.ratio for e in item[1]) ** (1 / len(item[1]))

    return max(tiles.items(), key=worth)


def _tuple(
    kernel: LlamaCpp, limits: Limits, variable: str, best: tuple[str, list[Evidence]], measured: Sequence[Problem]
) -> NewTuple:
    text, evidence = best
    tile = LlamaCppTile.parse(text)
    first = evidence[0].problem
    sizes = kernel.choices(first.format, limits, tile.shader)
    size = size_for(first, sizes)
    plain = sizes[size].plain
    names = kernel.names(plain)
    given = dict(zip(NAMES, tile.numbers, strict=True))
    length = len(names) if len(plain.constants) < len(NAMES) else len(NAMES)
    before = plain.constants[:length]
    after = tuple(given.get(names.get(i, ""), value) for i, value in enumerate(before))
    covered = {e.problem for e in evidence}
    return NewTuple(
        variable=variable,
        size=size,
        before=before,
        after=after,
        pipelines=kernel.sharing(plain, limits),
        evidence=tuple(evidence),
        others=tuple(p for p in measured if p not in covered),
    )


def _verdicts(journal: Iterable[Entry], identity: Identity) -> dict[str, Verdict]:
    """The last right verdict of each compiled kernel on this device."""
    found: dict[str, Verdict] = {}
    for entry in journal:
        try:
            if entry["kind"] == "verdict" and entry["identity"]["device"] == identity.device:
                verdict = from_json(Verdict, entry["verdict"])
                if verdict.right:
                    found[entry["artefact"]] = verdict
        except (KeyError, TypeError, ValueError):
            continue
    return found


def _text(
    kernel: LlamaCpp, limits: Limits, device: HostDevice, identity: Identity, tuples: Sequence[NewTuple], made: Patch
) -> str:
    """The text of a pull request: what changes where, measured how, and how to confirm it."""
    formats = sorted({e.problem.format for t in tuples for e in t.evidence})
    named = ", ".join(f"`{t.variable}`" for t in tuples)
    lines = [
        f"vulkan : tuples of {', '.join(t.variable for t in tuples)} for {identity.device}",
        "",
        f"On {identity.device} only (told by its name), {named} get the tuples that",
        "were measured to be faster there, on the shaders of this tree. Measured with",
        f"{', '.join(formats)} weights; the tuples serve every format of these pipelines. The dispatch",
        "divides by each tuple's own BM and BN. Other devices keep what they have.",
        "",
        f"Device: {identity.device}",
        f"Driver: {identity.driver}",
        f"Compiler: {identity.compiler}, SPIR-V not optimized; warptile {__version__}",
    ]
    if limits.has("coopmat"):
        lines.append("Cooperative matrices were off (GGML_VK_DISABLE_COOPMAT=1 GGML_VK_DISABLE_COOPMAT2=1).")
    order = ", ".join(kernel.names(tuples[0].pipelines[0]).get(i, "-") for i in range(len(tuples[0].after)))
    lines += ["", f"Numbers of a tuple: {order}", ""]
    for each in tuples:
        lines += [
            f"`{each.variable}` ({SIZE_NAMES[each.size]} pipeline)",
            "",
            f"    before  {{ {', '.join(map(str, each.before))} }}",
            f"    after   {{ {', '.join(map(str, each.after))} }}",
            "",
            "| shader | type, rows x k | tokens | before | after | ratio | interval | rounds | same against same |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for evidence in each.evidence:
            p, point = evidence.problem, evidence.point
            lines.append(
                f"| {evidence.shader} | {p.format}, {p.n} x {p.k} | {p.m} "
                f"| {_ms(point.stock_seconds)} | {_ms(point.seconds)} | {point.ratio:.2f} "
                f"| [{point.low:.2f}, {point.high:.2f}] | {point.rounds} | {1 + point.floor:.3f} |"
            )
        lines += ["", *_proofs(each)]
        if each.others:
            kept = ", ".join(f"{p.format} {p.n} x {p.k} at {p.m} tokens" for p in each.others)
            lines.append(f"Also measured, and won by another tuple or by none: {kept}.")
        lines.append("")
    if made.lost:
        lines += [f"Turned off by the host's check of shared memory with these tuples: {', '.join(made.lost)}.", ""]
    lines += [
        "Ratio: time before over time after, the median of paired, interleaved rounds, with its",
        f"{CONFIDENCE:.0%} interval.",
        "",
        "To confirm:",
        "",
        "    cmake -B build -DGGML_VULKAN=ON -DLLAMA_BUILD_TESTS=ON && cmake --build build --target test-backend-ops",
        "    ./build/bin/test-backend-ops test -o MUL_MAT -b Vulkan0",
        "    ./build/bin/test-backend-ops perf -o MUL_MAT -b Vulkan0",
        "",
        "The cases of `test` with quantized weights have few rows and take the small pipeline; `perf` has larger ones.",
    ]
    if limits.kind == "software":
        lines += ["", "A software device is hidden unless GGML_VK_VISIBLE_DEVICES=0 is set."]
    return "\n".join(lines) + "\n"


def _proofs(each: NewTuple) -> list[str]:
    found = [e.verdict for e in each.evidence if e.verdict is not None]
    if not found:
        return [f"Proved right (proof version {PROOF_VERSION})."]
    levels = ", ".join(sorted({v.level for v in found}))
    shapes = sum(len(v.shapes) for v in found)
    worst, nmse = max(v.worst_ratio for v in found), max(v.nmse for v in found)
    return [
        f"Proved right, level {levels} (version {PROOF_VERSION}): {shapes} shapes at the tile's boundaries, every",
        f"element within its error bound (worst {worst:.2f} of it), NMSE at most {nmse:.1e}, exact on whole numbers,",
        "deterministic, nothing written outside the result.",
    ]


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"
