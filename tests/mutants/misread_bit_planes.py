"""Bit planes read in another order: text stays plausible, weights are wrong. Once in a kernel's decoder, where the
reference disagrees; once in the format itself, where kernel and reference agree on the wrong values."""

from __future__ import annotations

import dataclasses
from typing import Any

from tests.mutants.direct import changed
from tests.mutants.made_up import fault
from tests.mutants.planting import Lab, Mutant, Spoken
from warptile import formats
from warptile.contracts import Problem
from warptile.proof.decoders import decoded

FIVE = Problem("Q5_0", 96, 512, 9)
HIGH = "(c.q1[i / 8u] >> (1u * (i % 8u)))"


def misread_everywhere(lab: Lab, planted: bool) -> Spoken:
    fmt = formats.by_name("Q5_0")
    if planted:
        wrong = fmt.layout.codes

        class Wrong(type(wrong)):  # type: ignore[misc]
            def values(self, codes: Any) -> Any:
                read = super().values(codes)
                return read % 16 + 16 * (read[..., ::-1] // 16)

        codes = Wrong(**{f.name: getattr(wrong, f.name) for f in dataclasses.fields(wrong)})
        fmt = dataclasses.replace(fmt, layout=dataclasses.replace(fmt.layout, codes=codes))
    found = decoded(fmt)
    return Spoken(found.check, found.detail) if found else Spoken("")


MUTANTS = (
    Mutant(18, "one bit of a code is flipped", "bound", "made-up", fault("flipped_code_bit"), "flipped_code_bit"),
    Mutant(
        18,
        "the decoder takes high bits from the last step of a word to the first",
        "nmse",
        "lavapipe",
        changed((HIGH, "(c.q1[i / 8u] >> (1u * (7u - i % 8u)))"), problem=FIVE),
        "misread_by_the_decoder",
    ),
    Mutant(
        18, "the format's high bits are read backwards", "decode", "paper", misread_everywhere, "misread_everywhere"
    ),
)
