"""Codebooks of the non-linear formats."""

from __future__ import annotations

from warptile.layouts.layout import Codebook

# int8 levels, closer together around zero (source: ggml's kvalues_iq4nl).
IQ4 = Codebook("iq4", (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113))
# E2M1 values, doubled so that they are whole (OCP Microscaling Formats 1.0).
E2M1 = Codebook("e2m1", (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12))
# One bit: minus or plus.
SIGN = Codebook("sign", (-1, 1))
# Grid formats, unfolded: the grid's magnitudes, then their negatives. Codes that no file makes stand for 0.
IQ2 = Codebook("iq2", (8, 25, 43, 0, -8, -25, -43, 0, 0, 0, 0, 0, 0, 0, 0, 0))
IQ3_XXS = Codebook("iq3", (4, 12, 20, 28, 36, 44, 52, 62, -4, -12, -20, -28, -36, -44, -52, -62))
IQ3_S = Codebook("iq3s", (1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15))
# Eight times (-1, 0, 1) plus 1/8, then minus 1/8.
IQ1 = Codebook("iq1", (-7, 1, 9, 0, -9, -1, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0))
