"""Gluon's operations that have other names in other versions of Triton (3.6 to 3.9)."""

from __future__ import annotations

from typing import Any

from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language._core import _unwrap_if_constexpr, builtin
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.hopper import tma

# Since 3.7 the older name is there and refuses.
copy_box = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
copy_out = getattr(tma, "async_store", None) or tma.async_copy_shared_to_global
copy_later = getattr(async_copy, "async_load", None) or async_copy.async_copy_global_to_shared
barrier = getattr(gl, "barrier", None) or gl.thread_barrier


@builtin  # type: ignore[untyped-decorator]
def reinterpreted(held: Any, dtype: Any, shape: Any, layout: Any, _semantic: Any = None) -> Any:
    """Shared memory as another type, shape and layout."""
    shape = [_unwrap_if_constexpr(size) for size in _unwrap_if_constexpr(shape)]
    return _semantic.memdesc_reinterpret(held, _unwrap_if_constexpr(dtype), shape, _unwrap_if_constexpr(layout))
