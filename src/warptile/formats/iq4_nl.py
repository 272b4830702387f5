"""IQ4_NL: 32 elements in 18 bytes, as Q4_0, the nibble an index into a codebook. value = d * codebook[q]."""

from __future__ import annotations

from warptile.formats._codebooks import IQ4
from warptile.formats._format import Format
from warptile.formats.q4_0 import join, split
from warptile.layouts.codes import BitPlanes
from warptile.layouts.layout import Layout
from warptile.layouts.scales import HalfScale

FORMAT = Format("IQ4_NL", 20, 32, 18, Layout(BitPlanes((4,)), HalfScale(32), codebook=IQ4), split, join)
