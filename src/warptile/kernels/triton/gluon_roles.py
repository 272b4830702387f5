"""Argument lists of warp-specialized device functions, put together from tuples that roles share."""

from __future__ import annotations

from typing import Any

from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language._core import builtin


@builtin  # type: ignore[untyped-decorator]
def arguments(*parts: Any, _semantic: Any = None) -> Any:
    """The elements of all `parts`, tuples of values or of constants, as one tuple.

    Constants stay constants, None among them; Triton's own `+` makes plain values of those of its right side.
    """
    return gl.tuple([each for part in parts for each in (part.value if isinstance(part, gl.constexpr) else part)])
