"""Hopper's kernel without a Hopper card: rules, shares of the work, planes, and what its compiler makes of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from warptile import devices, formats, kernels
from warptile.contracts import Limits, Problem
from warptile.kernels.triton.common import arranged
from warptile.kernels.triton.gemm_wgmma.planes import box, lane_planes, row_bytes
from warptile.kernels.triton.gemm_wgmma.rules import FIXED_BYTES, Shares, shared_bytes, shares_of
from warptile.kernels.triton.gemm_wgmma.tile import WgmmaTile

Q4_K = Problem("Q4_K", 4096, 14336, 128, "fp16", "fp16")
COPIED = "copied is for as many consumers of 64 rows as a step has parts, without split_k, n % 8 = 0"
KERNEL = kernels.by_name("triton.gemm_wgmma")


@pytest.fixture(scope="module")
def h200() -> Limits:
    return devices.by_name("h200", "cuda")


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"tile_k": 64}, "tile_k is the step of the weights' arrangement"),
        ({"tile_m": 48}, "tile_m is a power of two"),
        ({"split_k": 113}, "split_k <= k / tile_k"),
        ({"consumers": 3}, "consumers is 1, 2 or 4, rows 64 or 128"),
        ({"tile_m": 256, "rows": 128, "stages": 2}, "tile_m >= 8, tile_m * rows / 64 * sums <= 256 with 2 consumers"),
        ({"split_k": 0}, "programs >= 1 with split_k = 0, none with split_k > 1"),
        ({"stages": 6}, "shared bytes fit a program"),
        ({"turn": 4, "split_k": 8}, "turn is one of 1, 2, 4, 8 and divides a program's steps"),
        ({"turn": 3}, "turn is one of 1, 2, 4, 8 and divides a program's steps"),
        ({"free": 2}, "early, pairs, lean, hold, free, direct, copied, joined are 0 or 1"),
        ({"joined": 1}, "joined is for codes of six bits in two planes and base-3 digits"),
        ({"stages": 1}, "stages >= 2, group_m >= 1"),
        ({"rest": 1}, "rest is 0, 1 or 2, parts >= 0, both 0 unless split_k = 0"),
        ({"added": 32}, "added, where tiles are shared, divides tile_m and is at least 8"),
        ({"added": 256, "split_k": 2}, "added, where tiles are shared, divides tile_m and is at least 8"),
        ({"ring": 2}, "ring >= 3, for two consumers and steps of 128"),
        ({"ring": 4, "consumers": 1}, "ring >= 3, for two consumers and steps of 128"),
        ({"copied": 1, "consumers": 1}, COPIED),
        ({"copied": 1, "split_k": 2}, COPIED),
        ({"ring": 12}, "shared bytes fit a program"),
        ({"ring": 4, "programs": 132}, "ring is for one tile a program, not copied"),
        ({"ring": 4, "copied": 1}, "ring is for one tile a program, not copied"),
    ],
)
def test_a_broken_rule_is_named(h200: Limits, changed: dict[str, int], rule: str) -> None:
    tile = WgmmaTile(**{"tile_m": 128, "tile_k": 128, "stages": 4, **changed})
    assert [b.rule for b in KERNEL.broken_rules(tile, Q4_K, h200)] == [rule]


def test_it_is_for_one_architecture_and_16_bit_activations(h200: Limits) -> None:
    tile = WgmmaTile(64, 128, 4)
    assert not KERNEL.broken_rules(tile, Q4_K, h200)
    for card in ("rtx-4070", "rtx-3060"):
        (rule,) = KERNEL.broken_rules(tile, Q4_K, devices.by_name(card, "cuda"))
        assert rule.well_formed, rule
        assert "sm_90" in rule.rule
    (rule,) = KERNEL.broken_rules(tile, Problem("Q4_K", 4096, 14336, 128, "fp32", "fp32"), h200)
    assert rule.rule == "x is fp16 or bf16"
    (rule,) = KERNEL.broken_rules(tile, Problem("Q4_K", 4095, 14336, 128, "fp16", "fp16"), h200)
    assert rule.rule.startswith("pairs of rows")


@pytest.mark.parametrize("name", list(formats.all_formats()))
def test_planes_hold_every_byte_and_boxes_are_what_copies_take(name: str) -> None:
    """All of a row's bytes but its unit's; boxes of at most 256 elements a side, inner rows of whole 16 bytes."""
    found = arranged(Problem(name, 256, 4096, 1, "fp16", "fp16"))
    planes = lane_planes(found)
    held = sum(row_bytes(p) * (4096 // p[2]) for p in planes)
    assert held == sum(p.bits * p.per // 8 * (4096 // p.span) for p in found.planes[:-1])
    for plane in planes:
        for rows in (64, 128, 256):
            _, shape, swizzle = box(plane, rows)
            assert max(shape) <= 256
            assert shape[-1] * plane[0] // 8 % 16 == 0
            assert not swizzle or (shape[-1] * plane[0] == 8 * swizzle and shape[0] % 8 == 0)


@pytest.mark.parametrize("whole", [0, 1, 2])
@pytest.mark.parametrize("parts", [0, 1, 3, 8])
@pytest.mark.parametrize(("rows", "m", "steps", "programs"), [(200, 70, 7, 5), (4096, 512, 9, 132), (64, 3, 9, 9)])
def test_shared_and_whole_tiles_cover_every_step_once(
    rows: int, m: int, steps: int, programs: int, whole: int, parts: int
) -> None:
    """A step left out or done twice would be a wrong sum; a program too many among a tile's owners, one that is waited
    for and never comes."""
    pytest.importorskip("triton")
    from warptile.kernels.triton.gemm_wgmma import device_shares

    tile = WgmmaTile(64, 128, 4, split_k=0, programs=programs, rest=whole, parts=parts)
    found = shares_of(tile, m, rows, steps * 128)
    tiles = -(-rows // 128) * -(-m // 64)
    done: list[tuple[int, int]] = []
    owners: dict[int, list[int]] = {}
    for program in range(found.programs):
        begin, end = device_shares.share.fn(program, steps, 0, found.rest, found.sharers, True)
        walk = device_shares.turns_of.fn(
            program, found.programs, begin, end, m, rows, steps, found.rest, 128, 64, False, True
        )
        assert walk[1] > walk[0], "a program without work asks for a tile that is another's"
        for at in range(*walk):
            one = device_shares.tile_of.fn(at, program, found.programs, begin, end, steps, found.rest, True)
            first, last = device_shares.span_of.fn(one, begin, end, steps, found.rest, False, True)
            assert first < last, "the loop takes one step at least"
            owners.setdefault(one, []).append(program)
            done += [(one, step) for step in range(first, last)]
    assert sorted(done) == [(one, step) for one in range(tiles) for step in range(steps)]
    for one, own in owners.items():
        first, last = device_shares.owners.fn(one, steps, 0, found.rest, found.sharers, True)
        assert last - first == len(own) - 1
        assert len(own) == 1 or [*range(first, last + 1)] == own
        assert not parts or len(own) <= parts + 1


def test_split_tiles_cover_every_step_once() -> None:
    pytest.importorskip("triton")
    from warptile.kernels.triton.gemm_wgmma import device_shares

    split = [device_shares.share.fn(p, 7, 3, 0, 0, False) for p in range(4 * 3)]
    assert [s for begin, end in split for s in range(begin, end)] == list(range(4 * 7))
    assert device_shares.owners.fn(1, 7, 3, 0, 0, False) == (3, 5)


def test_what_is_left_of_full_rounds_is_shared(h200: Limits) -> None:
    """160 tiles for 132 programs: one whole each and 28 shared, or, with 2, all 160 shared."""
    shape = 512, 5120, 17408
    fields = {"split_k": 0, "programs": 132}
    assert shares_of(WgmmaTile(128, 128, 4, **fields, rest=1), *shape) == Shares(132, 28, 132)
    assert shares_of(WgmmaTile(128, 128, 4, **fields, rest=1, parts=4), *shape) == Shares(132, 28, 112)
    assert shares_of(WgmmaTile(128, 128, 4, **fields, rest=2), *shape) == Shares(132, 160, 132)
    assert shares_of(WgmmaTile(128, 128, 4, **fields), *shape) == Shares(132, 160, 132)
    assert shares_of(WgmmaTile(128, 128, 4, split_k=0, programs=80, rest=1), *shape) == Shares(80, 0, 1)


COMPILED = """
import json, sys
from pathlib import Path
from warptile import devices, kernels, offline
from warptile.contracts import Problem
kernel, tile = kernels.parse_tile(sys.argv[2])
problem = Problem(sys.argv[3], 4096, 14336, 512, sys.argv[4], sys.argv[4])
report = offline.compile_tiles(problem, devices.by_name("h200", "cuda"), [(kernel, tile, "given")], Path(sys.argv[1]))
print(json.dumps(report.to_json()))
"""
SHARED = "tile_m=128,tile_k=128,stages=4,split_k=0,programs=132,early=1,turn=2,free=1,rest=1,added=32"
COPYING = "tile_m=256,tile_k=128,stages=2,early=1,free=1,programs=128,copied=1"
RINGED = "tile_m=256,tile_k=128,stages=3,early=1,free=1,split_k=2,ring=5"


@pytest.mark.parametrize(
    ("text", "format", "dtype", "matrix"),
    [
        (SHARED, "Q4_K", "bf16", 32),
        (COPYING, "Q6_K", "fp16", 16),
        (RINGED, "Q6_K", "fp16", 16),
        ("tile_m=64,tile_k=128,stages=4,joined=1,direct=1", "Q6_K", "bf16", 16),
    ],
)
def test_the_compiler_keeps_the_loop_in_registers(
    tmp_path: Path, text: str, format: str, dtype: str, matrix: int
) -> None:
    """Two consumers of eight matrix instructions a step, nothing spilled in their loops, shared bytes as priced; the
    compiler's PTX has its marks where they are expected."""
    pytest.importorskip("triton")
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    text = f"triton.gemm_wgmma:{text}"
    command = [sys.executable, "-W", "ignore", "-c", COMPILED, str(tmp_path), text, format, dtype]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    (tile,) = json.loads(done.stdout)["tiles"]
    assert tile["good"], tile
    (build,) = tile["builds"]
    assert build["code"]["matrix"] == matrix
    assert build["code"]["loops"] >= 2
    assert build["resident_threads"] == 384
    own = kernels.parse_tile(text)[1]
    assert isinstance(own, WgmmaTile)
    paper = shared_bytes(own, Problem(format, 4096, 14336, 512, dtype, dtype))
    assert paper <= build["shared_bytes"] <= paper + FIXED_BYTES


def test_few_tokens_split_k_and_many_take_wide_tiles(h200: Limits) -> None:
    from warptile.search import rank

    few = rank(Q4_K.at(64), h200, [KERNEL])[0].tile
    many = rank(Q4_K.at(4096), h200, [KERNEL])[0].tile
    assert isinstance(few, WgmmaTile)
    assert isinstance(many, WgmmaTile)
    assert few.split_k != 1
    assert many.split_k == 1
    assert many.tile_m * many.rows >= 128 * 128
