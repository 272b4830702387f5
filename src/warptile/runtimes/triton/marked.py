"""PTX that Triton made, with what its marks ask for; see `kernels.triton.gluon_marks`."""

from __future__ import annotations

import hashlib
import os
import re
import threading
from pathlib import Path

from warptile.contracts import CompileFailed
from warptile.kernels.triton.program import ARRIVE, CLUSTER_WAIT, FREE, FROM, MULTICAST, OWN

REVISION = 1
"""Part of a marked program's key: what is written here differs from what others wrote."""

_COPY = re.compile(
    re.escape(MULTICAST) + r"((?:(?!// mark)[\s\S])*?)(@!?%p\d+\s+)?"
    r"(cp\.async\.bulk\.tensor\.\dd\.shared::cluster\.global\.mbarrier::complete_tx::bytes)([^;]*);"
)
_ARRIVAL = re.compile(
    re.escape(ARRIVE)
    + r"( written)?((?:(?!// mark)[\s\S])*?)@!?%p\d+\s+mbarrier\.arrive\.shared::cta\.b64\s+_,\s*\[([^\]]+)\];"
)
_UNMET = re.compile(re.escape(FREE) + r"((?:(?!// mark)[\s\S])*?)(mbarrier\.try_wait|wgmma\.fence)")
_REMOTE = re.compile(re.escape(FROM) + r" (\d+);([\s\S]*?)" + re.escape(OWN))
_LOAD = re.compile(r"ld\.shared\.((?:v\d\.)?b32)\s+([^;\[]*),\s*\[([%\w]+)(\+\d+)?\];")
_WAIT = re.compile(re.escape(CLUSTER_WAIT) + r"((?:(?!// mark)[\s\S])*?mbarrier\.try_wait\.parity)\.shared\.b64")
_MEETING = re.compile(r"\tbar\.sync\s+\d+, \d+;\n")
_ENTRY = re.compile(r"\n// %bb\.0:[^\n]*\n")


def marked(ptx: str, cluster: int, threads: int) -> str:
    """PTX that does what its marks ask for.

    A multicast copy writes the same place of all `cluster` programs and counts its bytes at the same barrier of each.
    An arrival is every warp's own, at the same barrier of each program; its warps do not meet for it, nor where they
    are free. Threads from `threads` on never come to where the first ones meet the cluster's others: they count as
    there from the start. Raises CompileFailed where the text is not as expected.
    """
    wanted = [ptx.count(mark) for mark in (MULTICAST, ARRIVE, FREE, FROM, CLUSTER_WAIT)]
    mask = (1 << cluster) - 1

    def copy(found: re.Match[str]) -> str:
        return (
            f"{found[1]}{{ .reg .b16 mask; mov.b16 mask, {mask}; "
            f"{found[2] or ''}{found[3]}.multicast::cluster{found[4]}, mask; }}"
        )

    def arrival(found: re.Match[str]) -> str:
        where = f"mbarrier.arrive.shared::cta.b64 _, [{found[3]}];"
        if cluster > 1:
            # What is only read needs no release to the cluster, which waits for all of a thread's writes.
            where = f"mbarrier.arrive{'.release.cluster' if found[1] else ''}.shared::cluster.b64 _, [there];"
        return (
            f"{_MEETING.sub('', found[2])}{{ .reg .b32 lane, there; .reg .pred arrives; "
            f"bar.warp.sync 0xffffffff; mov.u32 lane, %laneid; setp.lt.u32 arrives, lane, {cluster}; "
            f"mapa.shared::cluster.u32 there, {found[3]}, lane; "
            f"@arrives {where} }}"
        )

    def remote(found: re.Match[str]) -> str:
        there = (
            f"{{ .reg .b32 there; mapa.shared::cluster.u32 there, \\3, {found[1]}; "
            r"ld.shared::cluster.\1 \2, [there\4]; }"
        )
        text, count = _LOAD.subn(there, found[2])
        if not count or "ld.shared." in text:
            raise CompileFailed(f"marked PTX: {count} loads from program {found[1]} of a cluster")
        return text

    found = []
    for pattern, change in (
        (_COPY, copy),
        (_ARRIVAL, arrival),
        (_UNMET, lambda m: _MEETING.sub("", m[1]) + m[2]),
        (_REMOTE, remote),
        (_WAIT, lambda m: m[1] + ".acquire.cluster.shared::cta.b64"),
    ):
        ptx, count = pattern.subn(change, ptx)
        found.append(count)
    if found != wanted:
        raise CompileFailed(f"marked PTX: {found} of {wanted} marks were found in their places")
    if cluster > 1:
        start = (
            "{ .reg .pred later; .reg .b32 thread; mov.u32 thread, %tid.x; "
            f"setp.ge.u32 later, thread, {threads}; @later barrier.cluster.arrive.relaxed; }}\n"
        )
        ptx, entries = _ENTRY.subn(lambda entry: entry[0] + start, ptx)
        if entries != 1:
            raise CompileFailed(f"marked PTX: {entries} entries")
    return ptx


def marked_file(ptx: str, cluster: int, threads: int, folder: Path) -> Path:
    """A file with what `marked` makes of `ptx`, for Triton to compile from."""
    text = marked(ptx, cluster, threads)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"marked-{hashlib.sha256(text.encode()).hexdigest()[:32]}.ptx"
    if not path.exists():
        part = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
        part.write_text(text, "utf-8")
        part.replace(path)
    return path
