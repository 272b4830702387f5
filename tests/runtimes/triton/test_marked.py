"""What marks in PTX become: a copy or an arrival that misses the cluster's other programs hangs a card."""

from __future__ import annotations

from pathlib import Path

import pytest

from warptile.contracts import CompileFailed
from warptile.kernels.triton.program import ARRIVE, CLUSTER_WAIT, FREE, FROM, MULTICAST, OWN
from warptile.runtimes.triton.marked import marked, marked_file

MMA = "wgmma.mma_async.sync.aligned"
PTX = f"""
.visible .entry k()
{{
// %bb.0:
	mov.u32 %r1, 0; {FREE};
	bar.sync 	0, 128;
	mbarrier.try_wait.parity.shared.b64 p, [%r2], %r3;
	bar.sync 	0, 128;
	mov.u32 %r4, 0; {FREE};
	bar.sync 	0, 128;
	wgmma.fence.sync.aligned;
	{MMA}.m64n64k16.f32.f16.f16 d, a, b;
	mov.u32 %r5, 0; {ARRIVE};
	bar.sync 	2, 128;
	@%p9 mbarrier.arrive.shared::cta.b64 _, [%r6];
	@%p9 mbarrier.arrive.shared::cta.b64 _, [%r7];
}}
"""
CLUSTER = f"""
	mov.u32 %r1, 0; {MULTICAST};
	@%p4 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd3, {{%r2, %r3}}], [%r4];
	cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%rd4, {{%r2, %r3}}], [%r4];
	mov.u32 %r8, 0; {ARRIVE} written;
	@%p9 mbarrier.arrive.shared::cta.b64 _, [%r6];
	mov.u32 %r9, 0; {CLUSTER_WAIT};
	mbarrier.try_wait.parity.shared.b64 p, [%r2], %r3;
	mov.u32 %r1, 0; {FROM} 1;
	ld.shared.v4.b32 	{{%r1, %r2, %r3, %r4}}, [%r22+2048];
	mov.u32 %r1, 0; {OWN};
	ld.shared.b32 	%r1, [%r22];
"""


def lines(ptx: str, word: str) -> list[str]:
    return [line.strip() for line in ptx.splitlines() if word in line]


def test_free_warps_do_not_meet_and_arrive_each_for_itself() -> None:
    """Only the meetings before marked places go; an arrival that is not marked stays one thread's."""
    found = marked(PTX, 1, 128)
    assert len(lines(found, "bar.sync")) == 1
    own, other = lines(found, "mbarrier.arrive")
    assert "%laneid" in own
    assert "setp.lt.u32 arrives, lane, 1" in own
    assert "@arrives mbarrier.arrive.shared::cta.b64 _, [%r6];" in own
    assert other == "@%p9 mbarrier.arrive.shared::cta.b64 _, [%r7];"
    assert "barrier.cluster" not in found


def test_a_cluster_is_reached_by_what_is_marked_alone() -> None:
    found = marked(PTX.replace("\n}", CLUSTER + "}"), 2, 128)
    shared, alone = lines(found, "cp.async.bulk")
    assert "mov.b16 mask, 3;" in shared
    assert "@%p4 cp.async.bulk.tensor" in shared
    assert "bytes.multicast::cluster [%r1], [%rd3, {%r2, %r3}], [%r4], mask;" in shared
    assert "multicast" not in alone
    read, written = lines(found, "shared::cluster.b64")
    assert "@arrives mbarrier.arrive.shared::cluster.b64 _, [there];" in read
    assert "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];" in written
    assert len(lines(found, "try_wait.parity.acquire.cluster.shared::cta.b64")) == 1
    assert lines(found, "ld.shared")[0].count("mapa.shared::cluster.u32 there, %r22, 1;") == 1
    assert "ld.shared::cluster.v4.b32 {%r1, %r2, %r3, %r4}, [there+2048];" in found
    assert lines(found, "ld.shared")[1] == "ld.shared.b32 	%r1, [%r22];"
    (start,) = lines(found, "barrier.cluster")
    assert "setp.ge.u32 later, thread, 128" in start


@pytest.mark.parametrize(
    "broken",
    [
        PTX.replace("mbarrier.arrive", "mbarrier.other"),
        PTX.replace("wgmma.fence", "wgmma.other"),
        PTX.replace("\n}", f"\n{MULTICAST};\n}}"),
        PTX.replace("\n}", f"\n{FROM} 1;\n{OWN};\n}}"),
    ],
)
def test_a_mark_without_its_place_is_refused(broken: str) -> None:
    """Another compiler's PTX may look otherwise: half a rewriting would hang or be wrong."""
    with pytest.raises(CompileFailed, match="marked PTX"):
        marked(broken, 2, 128)


def test_the_file_is_named_by_what_it_holds(tmp_path: Path) -> None:
    first = marked_file(PTX, 1, 128, tmp_path / "cache")
    assert first == marked_file(PTX, 1, 128, tmp_path / "cache")
    assert first.suffix == ".ptx"
    assert first.read_text("utf-8") == marked(PTX, 1, 128)
    assert marked_file(PTX, 2, 128, tmp_path / "cache") != first
