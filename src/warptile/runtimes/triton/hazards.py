"""Compiled code that an assembler's fault may make wrong now and then."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

FIXED_PTXAS = (13, 3)
"""ptxas before it may overwrite registers that a running wgmma still reads as its operand A."""

# Accumulators in braces, then A: registers in braces, or a shared-memory descriptor.
_REGISTER_A = re.compile(r"wgmma\.mma_async[^{;]*\{[^}]*\}\s*,\s*\{")


def version_of(text: str) -> tuple[int, ...]:
    """(12, 8, 93) of "12.8.93", (12, 8) of "Build cuda_12.8.r12.8/compiler.35583870_0"; () where no number is there."""
    found = re.search(r"\d+(\.\d+)+", text)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def register_wgmma(ptx: str) -> bool:
    """Whether PTX has a wgmma whose operand A is in registers."""
    return _REGISTER_A.search(ptx) is not None


def hazards_of(kernels: Sequence[Any], ptxas: str) -> tuple[str, ...]:
    """What may make these kernels (Triton's own objects) wrong now and then, one line each; none of other targets.

    An assembler of unknown version is taken for an old one.
    """
    if version_of(ptxas)[:2] >= FIXED_PTXAS:
        return ()
    if not any(register_wgmma(kernel.asm.get("ptx", "")) for kernel in kernels):
        return ()
    fixed = ".".join(map(str, FIXED_PTXAS))
    return (f"wgmma with register operands, assembled by ptxas {ptxas or 'of unknown version'} (before {fixed})",)
