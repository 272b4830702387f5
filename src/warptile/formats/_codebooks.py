"""Codebooks of the non-linear formats."""

from __future__ import annotations

from warptile.layouts.layout import Codebook

# int8 levels, closer together around zero (source: ggml's kvalues_iq4nl).
IQ4 = Codebook("iq4", (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113))
# E2M1 values, doubled so that they are whole (OCP Microscaling Formats 1.0).
E2M1 = Codebook("e2m1", (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12))
# One bit: minus or plus.
SIGN = Codebook("sign", (-1, 1))
