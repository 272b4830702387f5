"""What a device sees: few arrangements, shared by formats; packing, unpacking, decoders."""

from warptile.layouts.codes import BitPlanes
from warptile.layouts.experts import pack_experts
from warptile.layouts.fields import Fields, Plane
from warptile.layouts.layout import Codebook, Layout
from warptile.layouts.packing import (
    PackedSlice,
    PackedWeights,
    checked_rows,
    pack,
    pack_repeated,
    pack_slices,
    packer,
    piece_of,
    slice_bytes,
    unpack,
    upload,
)

__all__ = [
    "BitPlanes",
    "Codebook",
    "Fields",
    "Layout",
    "PackedSlice",
    "PackedWeights",
    "Plane",
    "checked_rows",
    "pack",
    "pack_experts",
    "pack_repeated",
    "pack_slices",
    "packer",
    "piece_of",
    "slice_bytes",
    "unpack",
    "upload",
]
