"""Tensors of `triton.gemv_mma`: numbers along one dimension, and several tensors as one."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def along(layout: gl.constexpr, dim: gl.constexpr):
    """0, 1, .. along one dimension of a layout, size 1 along all others."""
    RANK: gl.constexpr = len(layout.shape)
    found = gl.arange(0, layout.shape[dim], layout=kept(layout, dim))
    for d in gl.static_range(RANK):
        if d != dim:
            found = gl.expand_dims(found, d)
    return found


@gluon.constexpr_function
def kept(layout, dim):
    """The slice of `layout` with only dimension `dim`."""
    found = layout
    for d in range(len(layout.shape) - 1, -1, -1):
        if d != dim:
            found = gl.SliceLayout(d, found)
    return found


@gluon.jit
def join4(a, b, c, d):
    """[..] four times to [.., 2, 2], in order."""
    return gl.join(gl.join(a, c), gl.join(b, d))


@gluon.jit
def join8(a, b, c, d, e, f, g, h):
    """[..] eight times to [.., 2, 2, 2], in order."""
    return gl.join(join4(a, c, e, g), join4(b, d, f, h))
