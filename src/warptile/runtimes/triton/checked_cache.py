"""Triton's folder of compiled code, every file of it held against its hash before it is used."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from warptile.runtimes.files import damaged

_SUFFIX = ".sha256"


@cache
def checked_cache() -> type[Any]:
    """A cache manager for `triton.knobs.cache.manager_class`.

    A file is stored with its SHA-256 beside it. One that does not match it, or without one, is as if it were not there,
    so that Triton compiles anew; what was damaged is told in a line. A group (a kernel's metadata and its code by
    stage) names its files by path: paths outside the entry's own folder are refused.
    """
    from triton.runtime.cache import FileCacheManager

    class CheckedCache(FileCacheManager):  # type: ignore[misc]
        def put(self, data: Any, filename: str, binary: bool = True) -> str:
            path: str = super().put(data, filename, binary)
            super().put(_digest(Path(path)), filename + _SUFFIX, False)
            return path

        def get_file(self, filename: str) -> str | None:
            return self._make_path(filename) if self._whole(filename) else None

        def get_group(self, filename: str) -> dict[str, str] | None:
            if not self._whole(f"__grp__{filename}"):
                return None
            group: dict[str, str] | None = super().get_group(filename)
            if not group:
                return None
            own = Path(self.cache_dir)
            if any(Path(path).parent != own or not self._whole(Path(path).name) for path in group.values()):
                return None
            return group

        def _whole(self, filename: str) -> bool:
            path = Path(self._make_path(filename))
            try:
                expected = Path(self._make_path(filename + _SUFFIX)).read_text("ascii", "replace")
                found = _digest(path)
            except OSError:
                return False
            if found != expected:
                damaged(path)
            return found == expected

    return CheckedCache


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
