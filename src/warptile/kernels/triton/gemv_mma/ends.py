"""What programs do with their sums at the end, in `triton.gemv_mma` and `triton.gemv_trits`."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from warptile.kernels.triton.gluon_names import barrier


@gluon.jit
def store_sums(total, y, inside, given, Part, Count, at, split, place, SIZE: gl.constexpr, SPLIT_K: gl.constexpr):
    """Store f32 sums to `y` where `inside`: the program's own, or, where k is in SPLIT_K parts, those of all of them,
    by the program that comes last.

    place: of each sum among the SIZE of a part; at: the number of the program's outputs, under which Count counts parts
    that are there and Part holds them. given: which sums go to and fro, None for all. Parts are summed in order,
    so results repeat bit by bit.
    """
    if SPLIT_K == 1:
        gl.store(y, total.to(y.dtype.element_ty), mask=inside)
    else:
        parts = Part + at.to(gl.int64) * (SPLIT_K * SIZE) + place
        other_sums = None
        if given is not None:
            other_sums = 0.0
        gl.store(parts + split * SIZE, total, mask=given)
        barrier()
        if gl.atomic_add(Count + at, 1, sem="acq_rel", scope="gpu") == SPLIT_K - 1:
            barrier()
            found = gl.load(parts, mask=given, other=other_sums, cache_modifier=".cg")
            for other in gl.static_range(1, SPLIT_K):
                found += gl.load(parts + other * SIZE, mask=given, other=other_sums, cache_modifier=".cg")
            gl.store(y, found.to(y.dtype.element_ty), mask=inside)
            gl.store(Count + at, 0)
