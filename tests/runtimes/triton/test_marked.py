"""What marks in PTX become: half a rewriting hangs a card or gives wrong sums."""

from __future__ import annotations

from pathlib import Path

import pytest

from warptile.contracts import CompileFailed
from warptile.kernels.triton.program import ARRIVE, FREE
from warptile.runtimes.triton.marked import marked, marked_file

PTX = f"""
	mov.u32 %r1, 0; {FREE};
	bar.sync 	0, 128;
	mbarrier.try_wait.parity.shared.b64 p, [%r2], %r3;
	bar.sync 	0, 128;
	mov.u32 %r4, 0; {FREE};
	bar.sync 	0, 128;
	wgmma.fence.sync.aligned;
	wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 d, a, b;
	mov.u32 %r5, 0; {ARRIVE};
	bar.sync 	2, 128;
	@%p9 mbarrier.arrive.shared::cta.b64 _, [%r6];
	@%p9 mbarrier.arrive.shared::cta.b64 _, [%r7];
"""


def lines(ptx: str, word: str) -> list[str]:
    return [line.strip() for line in ptx.splitlines() if word in line]


def test_free_warps_do_not_meet_and_arrive_each_for_itself() -> None:
    """Only the meetings before marked places go; an arrival that is not marked stays one thread's."""
    found = marked(PTX)
    assert len(lines(found, "bar.sync")) == 1
    own, other = lines(found, "mbarrier.arrive")
    assert "setp.eq.u32 arrives, lane, 0;" in own
    assert "@arrives mbarrier.arrive.shared::cta.b64 _, [%r6];" in own
    assert other == "@%p9 mbarrier.arrive.shared::cta.b64 _, [%r7];"
    assert lines(found, "wgmma") == lines(PTX, "wgmma")


@pytest.mark.parametrize(
    "broken",
    [
        PTX.replace("mbarrier.arrive", "mbarrier.other"),
        PTX.replace("wgmma.fence", "wgmma.other"),
        PTX + f"\n{ARRIVE};\n",
    ],
)
def test_a_mark_without_its_place_is_refused(broken: str) -> None:
    """Another compiler's PTX may look otherwise."""
    with pytest.raises(CompileFailed, match="marked PTX"):
        marked(broken)


def test_the_file_is_named_by_what_it_holds(tmp_path: Path) -> None:
    first = marked_file(PTX, tmp_path / "cache")
    assert first == marked_file(PTX, tmp_path / "cache")
    assert first.suffix == ".ptx"
    assert first.read_text("utf-8") == marked(PTX)
    assert marked_file(PTX.replace("%r6", "%r8"), tmp_path / "cache") != first
