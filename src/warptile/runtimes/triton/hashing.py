"""Triton's hash of a device function, made the same in every process."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any


def settle(function: Any, settled: set[int]) -> None:
    """Hash a device function anew, after everything it calls.

    Triton 3.6 and 3.9 hash a function with its callees and with the global constants that callees hashed before it
    use; which were hashed before depends on what was lowered first, and a hash is kept for good. Two processes then
    miss in the cache what the other compiled. In order of calls, callees first, the hash depends on the text alone.

    settled: identities of the functions done in this process; added to.
    """
    if id(function) in settled:
        return
    settled.add(id(function))
    for callee in _callees(function):
        settle(callee, settled)
    if hasattr(function, "hash") and hasattr(function, "used_global_vals"):
        function.hash, function.used_global_vals = None, {}
        _ = function.cache_key


def _callees(function: Any) -> Iterator[Any]:
    """Device functions whose names a device function's code mentions, its own or through a module."""
    names = getattr(getattr(function.fn, "__code__", None), "co_names", ())
    known = getattr(function.fn, "__globals__", {})
    for name in names:
        value = known.get(name)
        candidates = [getattr(value, n, None) for n in names] if isinstance(value, types.ModuleType) else [value]
        yield from (c for c in candidates if hasattr(c, "cache_key") and hasattr(c, "fn"))
