"""PTX that Triton made, with what its marks ask for; see `kernels.triton.gluon_marks`.

Triton has all threads of a warp group meet before one of them arrives at a barrier for all, and again before each wait
and matrix instruction that follows. Where every warp arrives by itself, none of these meetings orders anything.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from pathlib import Path

from warptile.contracts import CompileFailed
from warptile.kernels.triton.program import ARRIVE, FREE

REVISION = 1
"""Part of a marked program's key: what is written here differs from what others wrote."""

_ARRIVAL = re.compile(
    re.escape(ARRIVE) + r"((?:(?!// mark)[\s\S])*?)@!?%p\d+\s+mbarrier\.arrive\.shared::cta\.b64\s+_,\s*\[([^\]]+)\];"
)
_UNMET = re.compile(re.escape(FREE) + r"((?:(?!// mark)[\s\S])*?)(mbarrier\.try_wait|wgmma\.fence)")
_MEETING = re.compile(r"\tbar\.sync\s+\d+, \d+;\n")


def marked(ptx: str) -> str:
    """PTX that does what its marks ask for: an arrival is every warp's own, and warps do not meet for it, nor where
    they are free. Raises CompileFailed where the text is not as expected."""
    wanted = [ptx.count(mark) for mark in (ARRIVE, FREE)]

    def arrival(found: re.Match[str]) -> str:
        return (
            f"{_MEETING.sub('', found[1])}{{ .reg .b32 lane; .reg .pred arrives; bar.warp.sync 0xffffffff; "
            "mov.u32 lane, %laneid; setp.eq.u32 arrives, lane, 0; "
            f"@arrives mbarrier.arrive.shared::cta.b64 _, [{found[2]}]; }}"
        )

    ptx, arrivals = _ARRIVAL.subn(arrival, ptx)
    ptx, free = _UNMET.subn(lambda found: _MEETING.sub("", found[1]) + found[2], ptx)
    if [arrivals, free] != wanted:
        raise CompileFailed(f"marked PTX: {arrivals} arrivals and {free} places were found of {wanted}")
    return ptx


def marked_file(ptx: str, folder: Path) -> Path:
    """A file with what `marked` makes of `ptx`, for Triton to compile from."""
    text = marked(ptx)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"marked-{hashlib.sha256(text.encode()).hexdigest()[:32]}.ptx"
    if not path.exists():
        part = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
        part.write_text(text, "utf-8")
        part.replace(path)
    return path
