"""Tuples into a checkout's host code, as a unified diff whose meaning has been checked by running the patched host."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from warptile.contracts import UnusableInput
from warptile.gguf.escape import shown
from warptile.llama_cpp.checking import profiles
from warptile.llama_cpp.checkout import Checkout
from warptile.llama_cpp.host import VENDOR_IDS, Host, HostDevice, Pipeline
from warptile.llama_cpp.rules import broken_rules
from warptile.llama_cpp.shader import Shader
from warptile.llama_cpp.variants import Variants


@dataclass(frozen=True)
class Change:
    """A variable's new tuple. before: its pipelines on the device; after: the tuple's numbers in the host's order."""

    variable: str
    before: tuple[Pipeline, ...]
    after: tuple[int, ...]


@dataclass(frozen=True)
class Patch:
    """diff: unified, against the checkout's root. lost: pipelines the host turns off, since the new tuple takes more
    shared memory than the device has for their format.
    """

    diff: str
    lost: tuple[str, ...]


def patch(checkout: Checkout, device: HostDevice, changes: Sequence[Change]) -> Patch:
    """The diff that gives `device`, told by its name, these tuples, and every other device what it had.

    The tuples stand before the host's own check of shared memory, which then judges them; divisors are taken from the
    tuple itself. Raises UnusableInput where this version offers no such place, or where the patched host, run by the
    reader, does not choose exactly that.
    """
    before = _text(checkout)
    host = Host(checkout)
    line = host.shared_check_line()
    if line is None:
        raise UnusableInput(f"{shown(checkout.host)}: has no check of shared memory to put tuples before")
    lines = before.split("\n")
    first, last = host.lines
    for change in changes:
        if any(p.denoms[:2] != change.after[1:3] for p in change.before):
            _use_own_divisors(checkout, lines, first, last, change.variable)
    indent = re.match(r"\s*", lines[line - 1])
    lines[line - 1 : line - 1] = _block(indent[0] if indent else "", device, changes)
    after = "\n".join(lines)
    lost = _verify(checkout, host, after, device, changes)
    name = checkout.relative(checkout.host)
    diff = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{name}", f"b/{name}"
    )
    return Patch("".join(diff), lost)


def _text(checkout: Checkout) -> str:
    try:
        return checkout.host.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnusableInput(f"{shown(checkout.host)}: cannot be read: {error}") from error


def _block(indent: str, device: HostDevice, changes: Sequence[Change]) -> list[str]:
    """The lines that set the tuples on one device."""
    vendor = VENDOR_IDS.get(device.vendor)
    asked = [] if vendor is None else [f"device->vendor_id == 0x{vendor:x}"]
    asked += [f"device->subgroup_size == {device.subgroup}", "!device->coopmat_support"]
    named = f"std::string(device->properties.deviceName.data()) == {json.dumps(device.name, ensure_ascii=False)}"
    inner = indent + "    "
    return [
        f"{indent}if ({' && '.join(asked)} &&",
        f"{inner}{named}) {{",
        *(f"{inner}{c.variable} = {{ {', '.join(map(str, c.after))} }};" for c in changes),
        f"{indent}}}",
        "",
    ]


def _use_own_divisors(checkout: Checkout, lines: list[str], first: int, last: int, variable: str) -> None:
    """Where the tuple is paired with shared divisors, pair it with its own sides."""
    pattern = re.compile(rf"\{{\s*{re.escape(variable)}\s*,\s*\w*wg_denoms\w*\s*,")
    own = f"{{{variable}, {{ {variable}[1], {variable}[2], 1 }},"
    found = False
    for index in range(first - 1, min(last, len(lines))):
        if pattern.search(lines[index]):
            found = True
            lines[index] = pattern.sub(own, lines[index])
    if not found:
        raise UnusableInput(
            f"{shown(checkout.host)}: {variable} shares its wg_denoms with other tuples, and this version pairs them"
            " where a diff cannot part them: tune with sides as they are, or take a newer llama.cpp"
        )


def _verify(
    checkout: Checkout, host: Host, after: str, device: HostDevice, changes: Sequence[Change]
) -> tuple[str, ...]:
    """Run the patched host on this device and on common ones; what this device lost."""
    patched = Host(checkout, after)
    for other in profiles():
        if _plain(host.choose(other).pipelines) != _plain(patched.choose(other).pipelines):
            raise UnusableInput(f"{shown(checkout.host)}: the patched host would choose otherwise on {other.name} too")
    chosen = patched.choose(device)
    wanted = {change.variable: change.after for change in changes}
    variants, read = Variants(checkout), dict[str, Shader]()
    old = host.choose(device).pipelines
    changed = {p.shader for p in old if p.variable in wanted}
    lines = {p.line: p.variable for p in chosen.pipelines}
    mine = [p for p in chosen.pipelines if lines[p.line] in wanted]
    if {p.variable for p in mine} != set(wanted):
        missing = ", ".join(sorted(set(wanted) - {p.variable for p in mine}))
        raise UnusableInput(f"{shown(checkout.host)}: the patched host builds no pipeline with {missing}")
    for pipeline in mine:
        variant = variants.named(pipeline.shader)
        if variant is not None:
            read.setdefault(pipeline.shader, Shader(checkout, variant))
        tuple_ = wanted[pipeline.variable]
        broken = broken_rules(pipeline, device, read.get(pipeline.shader))
        if pipeline.constants[: len(tuple_)] != tuple_ or broken:
            why = broken[0].text() if broken else "another tuple"
            raise UnusableInput(f"{shown(checkout.host)}: the patched host gives {pipeline.shader}: {why}")
    rest = [p for p in chosen.pipelines if p.shader not in changed]
    if _plain(rest) != _plain([p for p in old if p.shader not in changed]):
        raise UnusableInput(f"{shown(checkout.host)}: the patched host changes pipelines that are not meant")
    kept = {(p.shader, p.constants[11:], p.size) for p in chosen.pipelines}
    return tuple(
        dict.fromkeys(f"{p.shader} ({p.size})" for p in old if (p.shader, p.constants[11:], p.size) not in kept)
    )


def _plain(pipelines: Sequence[Pipeline]) -> list[tuple[object, ...]]:
    """Pipelines without the lines their tuples stand on."""
    return [(p.name, p.shader, p.constants, p.denoms, p.align, p.subgroup) for p in pipelines]
