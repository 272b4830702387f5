"""The quad arrangement of packed weights, which Triton kernels read; `decode` holds its device functions."""

from warptile.layouts.triton.arrangement import MOST_PLANES, NAME, Arrangement, arrangement
from warptile.layouts.triton.packing import pack_rows, plane_views, unpack_rows

__all__ = ["MOST_PLANES", "NAME", "Arrangement", "arrangement", "pack_rows", "plane_views", "unpack_rows"]
