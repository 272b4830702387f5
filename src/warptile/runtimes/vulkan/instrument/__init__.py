"""Instrumented builds: a kernel's SPIR-V rewritten so that it watches itself. No kernel's source knows of it.

`checked` asks before every access to shared memory and storage buffers; `delayed` runs workgroups and warps in another
order and at other speeds. Both read and write one more buffer, bound after the executed ids (see `report`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warptile.contracts.errors import DoesNotFit
from warptile.contracts.launch import Source
from warptile.contracts.runtime import Instrument
from warptile.runtimes.vulkan.instrument import spirv_ops as op
from warptile.runtimes.vulkan.instrument.checked import Site, checked
from warptile.runtimes.vulkan.instrument.delayed import delayed
from warptile.runtimes.vulkan.instrument.report import MOST_BINDINGS

_NARROW = {
    "fp16": op.CAPABILITY_OF_WIDTH[op.TYPE_FLOAT, 16],
    "int16": op.CAPABILITY_OF_WIDTH[op.TYPE_INT, 16],
    "int8": op.CAPABILITY_OF_WIDTH[op.TYPE_INT, 8],
}

INSTRUMENTS: frozenset[Instrument] = frozenset({"checked", "delayed"})


@dataclass(frozen=True)
class Instrumented:
    """A rewritten module. sites: its accesses, by number; shadow_words, invocations: of one workgroup."""

    instrument: Instrument
    module: bytes
    sites: tuple[Site, ...]
    shadow_words: int
    invocations: int


def instrumented(
    source: Source,
    instrument: Instrument,
    binary: bytes,
    identity: int,
    compile_text: Callable[[str], bytes],
    features: frozenset[str],
) -> Instrumented:
    """A kernel's SPIR-V, compiled with debug lines, with an instrument put in.

    identity: the binary's id, which the module writes. compile_text: GLSL to SPIR-V. features: of the device. Raises
    CompileFailed for what the instrument cannot follow, DoesNotFit for too many bindings or invocations, or numbers of
    16 or 8 bits that the device only stores.
    """
    if source.bindings + 1 > MOST_BINDINGS:
        raise DoesNotFit(f"an instrumented kernel's bindings < {MOST_BINDINGS}", str(source.bindings))
    special = dict(source.constants)
    if instrument == "delayed":
        module, invocations = delayed(binary, special, identity, source.bindings + 1, compile_text)
        return Instrumented(instrument, module, (), 0, invocations)
    made = checked(binary, special, identity, source.bindings + 1, compile_text, source.reads_beyond)
    missing = sorted(name for name, number in _NARROW.items() if number in made.capabilities and name not in features)
    if missing:
        raise DoesNotFit("the device has the features a checked build needs", f"it lacks {', '.join(missing)}")
    return Instrumented(instrument, made.module, made.sites, made.shadow_words, made.invocations)
