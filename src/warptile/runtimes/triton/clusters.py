"""Clusters of programs for Gluon code of one program each: what its PTX says, made to reach the whole cluster."""

from __future__ import annotations

import hashlib
import os
import re
import threading
from pathlib import Path
from typing import Any

from warptile.contracts import CompileFailed
from warptile.kernels.triton.program import ARRIVE, MULTICAST

_COPY = re.compile(
    re.escape(MULTICAST) + r"(.*?)(cp\.async\.bulk\.tensor\.\dd\.shared::cluster\.global\.mbarrier::complete_tx::bytes)"
    r"([^;]*);",
    re.DOTALL,
)
_ARRIVAL = re.compile(
    re.escape(ARRIVE) + r"(.*?)(@!?%p\d+\s+)?mbarrier\.arrive\.shared::cta\.b64\s+_,\s*\[([^\]]+)\];", re.DOTALL
)
_ENTRY = re.compile(r"\n// %bb\.0:[^\n]*\n")


def clustered(ptx: str, cluster: int, threads: int) -> str:
    """PTX whose marked copies and arrivals reach all `cluster` programs.

    A copy writes the same place of each and counts its bytes at the same barrier of each. Threads from `threads` on
    never come to where the first ones meet the cluster's others: they count as there from the start.
    Raises CompileFailed where the text is not as expected.
    """
    wanted = ptx.count(MULTICAST), ptx.count(ARRIVE)
    mask = (1 << cluster) - 1

    def copy(found: re.Match[str]) -> str:
        # A predicate before the copy stays before it: the mask's register is set outside.
        before, predicate = re.fullmatch(r"(.*?)(@!?%p\d+\s+)?", found[1], re.DOTALL).groups("")  # type: ignore[union-attr]
        return (
            f"{before}{{ .reg .b16 mask; mov.b16 mask, {mask}; "
            f"{predicate}{found[2]}.multicast::cluster{found[3]}, mask; }}"
        )

    def arrival(found: re.Match[str]) -> str:
        predicate = found[2] or ""
        each = "".join(
            f"mapa.shared::cluster.u32 there, {found[3]}, {rank}; "
            f"{predicate}mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there]; "
            for rank in range(cluster)
        )
        return f"{found[1]}{{ .reg .b32 there; {each}}}"

    ptx, copies = _COPY.subn(copy, ptx)
    ptx, arrivals = _ARRIVAL.subn(arrival, ptx)
    start = (
        f"{{ .reg .pred later; .reg .b32 thread; mov.u32 thread, %tid.x; setp.ge.u32 later, thread, {threads}; "
        "@later barrier.cluster.arrive.relaxed; }\n"
    )
    ptx, entries = _ENTRY.subn(lambda found: found[0] + start, ptx)
    if (copies, arrivals) != wanted or not copies or not arrivals or entries != 1:
        raise CompileFailed(f"PTX for a cluster: {copies} copies, {arrivals} arrivals of {wanted}, {entries} entries")
    return ptx


def clustered_file(kernel: Any, cluster: int, threads: int, folder: Path) -> Path:
    """A file with what `clustered` makes of a kernel that Triton compiled, for Triton to compile from."""
    text = clustered(kernel.asm["ptx"], cluster, threads)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"cluster-{hashlib.sha256(text.encode()).hexdigest()[:32]}.ptx"
    if not path.exists():
        part = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
        part.write_text(text, "utf-8")
        part.replace(path)
    return path
