"""The Markdown of a handover: its sections in order."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence
from pathlib import PurePath

from warptile import __version__
from warptile.gguf.escape import printable
from warptile.handover import tried
from warptile.handover.commands import command_of, device_words, reproduce
from warptile.handover.levers import MATMULS, Lever, heaviest, levers_of, read_floor
from warptile.handover.markdown import cell, nameless, ratio, ref, table, time
from warptile.handover.parts import Champion, Part
from warptile.journal.facts import Run
from warptile.kernels import all_kernels
from warptile.roofline import arithmetic
from warptile.words import tile as short_tile
from warptile.workloads.texts import words_of

INTRODUCTION = """\
Written by `warptile journal handover` from the journal of the runs below; every number in it is a journal entry's.

How to read it. A *hypothesis* is a pair of tiles on one matmul: the second (the arm) is held against the first (the
control). *Predicted* is the control's time over the arm's on paper, before the race. *Measured* is the same ratio as
raced: the median over paired, interleaved rounds, above 1 where the arm is faster, with a 95 % interval; the
*floor* is what the control showed against itself in the same run. A gain is accepted only where the interval lies above
1 by more than the floor, and so again on fresh weights in fresh buffers (*fresh*). Times are medians of the races; only
ratios of one race compare. A tile is `kernel:numbers`, its fields in order; the commands name every field. An entry is
shown by `warptile journal show RUN:NUMBER`."""

REPEATING = """\
Each command races its row again: exit 0 where the new interval overlaps the recorded one or both lie within their A/A
floors, 1 where not. `--recorded` holds the recorded interval (of the race and its confirmation together) and the floor.
Where several cards have the same name, give `--device` a number instead."""


def handover(parts: Sequence[Part], levers: int = MATMULS, warnings: Sequence[str] = ()) -> str:
    """The whole document. levers: matmuls of each m to look for untried tiles on. warnings: of the journal."""
    only = f": {cell(parts[0].identity.device)} through {parts[0].identity.runtime}" if len(parts) == 1 else ""
    lines = [f"# Handover{only}", "", INTRODUCTION, ""]
    if not parts:
        lines += ["The journal holds no proof, race or decision that was asked for.", ""]
    for part in parts:
        lines += _part(part, levers, single=len(parts) == 1)
    if warnings:
        lines += ["## Lines of the journal that are not as they were written", ""]
        lines += [f"- {printable(nameless(line))}" for line in warnings] + [""]
    return "\n".join(lines).rstrip() + "\n"


def _part(part: Part, levers: int, single: bool) -> list[str]:
    mark, who = "##" if single else "###", part.identity
    lines = [] if single else [f"## {cell(who.device)} through {who.runtime}", ""]
    found = levers_of(part, levers)
    sections = (
        ("Question", _question(part)),
        ("Tiles", _tiles(part)),
        ("Champions and their evidence", _champions(part)),
        ("Hypotheses", tried.hypotheses(part)),
        ("What was timed", tried.timed(part)),
        ("Out before a race", tried.refused(part)),
        ("Prediction against outcome", tried.prediction(part)),
        ("Open levers, by what they promise", _levers(found, part, levers)),
        ("To continue", _continue(part)),
        ("Commands", _commands(part, found)),
    )
    for title, body in sections:
        if body:
            lines += [f"{mark} {title}", "", *body, ""]
    return lines


def _question(part: Part) -> list[str]:
    workloads = dict.fromkeys(run.workload.name for run in part.runs if run.workload is not None)
    asked = " and ".join(cell(name) for name in workloads) or "the matmuls below"
    lines = [f"Which tile is the fastest right one on {cell(part.identity.device)}, for {asked}?", ""]
    lines += [
        f"- measured with {cell(each.driver)}, {cell(each.compiler or 'no compiler of ours')}"
        for each in part.identities
    ]
    if len(part.identities) > 1:
        lines.append("- the last of these is the newest; times under different ones do not compare")
    if (limits := part.limits) is not None:
        facts = [f"{limits.units} units"] * bool(limits.units)
        facts += [f"{limits.shared_bytes_per_unit} B of shared memory a unit"] * bool(limits.shared_bytes_per_unit)
        facts += [f"{limits.registers_per_unit} registers a unit"] * bool(limits.registers_per_unit)
        facts += [f"{limits.cache_bytes / 2**20:.0f} MiB of cache"] * bool(limits.cache_bytes)
        facts += [f"{limits.read_gb_per_s:.0f} GB/s stated"] * bool(limits.read_gb_per_s)
        lines.append(f"- limits {part.limits_of}: {', '.join(facts) or 'none known'}")
    top = next((run.ceilings for run in reversed(part.runs) if run.ceilings is not None), None)
    if top is not None:
        lines.append(
            f"- measured ceilings: {top.read_bytes_per_s / 1e9:.0f} GB/s read,"
            f" {top.flops_per_s / 1e12:.2f} TFLOP/s {arithmetic(part.identity.runtime)},"
            f" empty launch {time(top.empty_launch_s)}"
        )
    return [*lines, "", *table(("run", "what", "asked because", "ended"), [_run(run) for run in part.runs])]


def _run(run: Run) -> tuple[str, ...]:
    told = f"`{command_of(run)}`"
    if not run.command:
        ms = run.facts.get("ms")
        at = f" at M = {', '.join(str(m) for m in ms)}" if isinstance(ms, list) and ms else ""
        told = f"{run.verb or 'run'} {PurePath(str(run.facts.get('source') or '')).name}{at}"
    usual = "is it right" if run.verb == "prove" else "the prices, of each pair its own"
    when = f"{run.name[-8:]}, {run.time[:16].replace('T', ' ')}" + (f", warptile {run.version}" if run.version else "")
    return when, told, run.because or usual, run.ended or "killed, or still at work"


def _tiles(part: Part) -> list[str]:
    """What the numbers of each kernel's tiles are, in order."""
    tiles = [*(v.tile for v in part.history.verdicts), *(t.tile for t in part.history.timings)]
    names = {tile.partition(":")[0] for tile in tiles}
    lines = []
    for name in sorted(names & set(all_kernels())):
        kind = all_kernels()[name].tile_type
        fields = kind.positional or tuple(field.name for field in dataclasses.fields(kind))
        lines.append(f"- `{name.partition('.')[2]}`: {', '.join(fields)}")
    return lines


def _champions(part: Part) -> list[str]:
    if not part.champions:
        return ["Nothing was put into a table: no matmul has a champion yet."]
    rows = [_champion(champion, part) for champion in part.champions]
    lines = [
        "What the table serves. *To stock*: the ratio to what a static table picks here. *Timed*: tiles timed there."
    ]
    if any(row[4] for row in rows):
        measured = any(run.ceilings is not None for run in part.runs)
        rate = "as it was measured" if measured else f"as stated ({part.limits_of})"
        lines += [f"*Reads*: the time over that of reading weights and x and writing y once at the read rate {rate}."]
    head = ("matmul", "a pass", "champion", "time", "reads", "to stock", "timed", "compiler", "evidence")
    return [*lines, "", *table(head, rows), *_confirmed(part)]


def _confirmed(part: Part) -> list[str]:
    """Whole models held against their files on this device, the last time each."""
    last = {each.model: each for each in part.history.confirmations}
    lines = []
    for each in last.values():
        agreement = each.facts.get("agreement")
        kl = agreement.get("kl_mean") if isinstance(agreement, dict) else None
        told = f", mean divergence {kl:.1e} nats" if isinstance(kl, float) else ""
        answer = "is still its file's model" if each.right else f"is not confirmed: {'; '.join(each.failed)}"
        lines.append(f"- {cell(each.model)}, tuned, {cell(answer)}{told} ({ref(each.ref)})")
    return ["", "Whole models against the same file decoded to float32:", "", *lines] if lines else []


def _champion(champion: Champion, part: Part) -> tuple[str, ...]:
    point, problem = champion.point, champion.problem
    won = point.tile != point.stock and point.stock
    floor = read_floor(part, problem)
    return (
        words_of(problem),
        f"{champion.count} x" if champion.count else "",
        f"`{short_tile(point.tile)}`",
        time(point.seconds),
        f"{point.seconds / floor:.2f}" if floor else "",
        ratio(point.ratio, point.low, point.high) if won else "is the stock tile",
        str(len({t.tile for t in part.history.timings if t.problem == problem})),
        _resources(champion, part),
        f"{f'H{champion.row}, ' if champion.row else ''}{point.outcome}, {ref(champion.ref)}",
    )


def _resources(champion: Champion, part: Part) -> str:
    """What the compiler says of the champion, "" where no entry has it."""
    for proved in reversed(part.history.verdicts):
        found = proved.resources
        if (
            proved.tile == champion.point.tile
            and proved.problem.format == champion.problem.format
            and found is not None
        ):
            words = [f"{found.registers} registers"] if found.registers is not None else []
            words += [f"{found.spill_bytes} B spilled"] if found.spill_bytes is not None else []
            words += [f"{found.shared_bytes} B shared"] if found.shared_bytes is not None else []
            return ", ".join(words)
    return ""


def _levers(levers: Sequence[Lever], part: Part, most: int) -> list[str]:
    lines = [
        "Predicted, not measured: the champion's time over the price as this device's timings correct it, and where",
        f"two thirds of its probability lie. Untried tiles were looked for on the {most} heaviest matmuls of each M",
        f"({len(heaviest(part, most))} in all). *Saves*: of a pass's matmul time at that M.",
    ]
    if part.limits is None:
        lines = ["This device's limits are in no entry and no data file, so that untried tiles cannot be priced here."]
    if not levers:
        return [*lines, "", "None: no tile that was not measured has a better price, and no race was left open."]
    rows = [
        (
            f"L{number}",
            words_of(lever.problem),
            f"`{short_tile(lever.arm)}`",
            f"`{short_tile(lever.control)}`",
            f"{lever.gain:.2f}x" + (f" [{lever.low:.2f}, {lever.high:.2f}]" if lever.low < lever.high else ""),
            f"{lever.share:.1%}",
            lever.what,
        )
        for number, lever in enumerate(levers, 1)
    ]
    return [*lines, "", *table(("", "matmul", "try", "against", "predicted", "saves", "why it is open"), rows)]


def _continue(part: Part) -> list[str]:
    device = shlex.join(device_words(part.identity))
    sources: dict[str, set[int]] = {}
    for run in part.runs:
        ms = run.facts.get("ms")
        if run.verb == "tune" and run.facts.get("source") and isinstance(ms, list):
            sources.setdefault(PurePath(str(run.facts["source"])).name, set()).update(m for m in ms if type(m) is int)
    tunes = [
        f"warptile tune {shlex.quote(source)} --m {','.join(str(m) for m in sorted(ms))} {device} --explore"
        for source, ms in sources.items()
    ]
    return [
        "Take the journal's files in, serve what they hold, and search on from there:",
        "",
        "```sh",
        "warptile journal merge FILE.jsonl...",
        f"warptile table rebuild {device}",
        *tunes,
        "```",
        "",
        "A new thought is a study of two tiles, priced first, then raced, and written down with its reason:",
        "",
        "```sh",
        f'warptile study --arms CONTROL ARM --problem "Q4_K n=4096 k=4096 m=128 dtype=fp16" {device} --because "..."',
        "```",
    ]


def _commands(part: Part, levers: Sequence[Lever]) -> list[str]:
    rows = [(f"H{row.number}", reproduce(row, part.history.runs)) for row in part.rows]
    tries = [(f"L{number}", lever.command) for number, lever in enumerate(levers, 1)]
    gone = [name for name, command in (*rows, *tries) if not command]
    lines = [REPEATING, ""]
    for group in (rows, tries):
        told = [f"# {name}\n{command}" for name, command in group if command]
        lines += ["```sh", *told, "```", ""] if told else []
    if gone:
        lines += [
            f"No command here repeats {', '.join(gone)}: this version has no such kernel, or it is one of a checkout",
            "of llama.cpp (`warptile tune --llama-cpp`).",
            "",
        ]
    return [*lines, f"Written by warptile {__version__}."]
