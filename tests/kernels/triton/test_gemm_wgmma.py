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
from warptile.kernels.triton.gemm_wgmma.rules import FIXED_BYTES, shared_bytes
from warptile.kernels.triton.gemm_wgmma.tile import WgmmaTile

Q4_K = Problem("Q4_K", 4096, 14336, 128, "fp16", "fp16")
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
        ({"tile_m": 256, "rows": 128, "stages": 1}, "tile_m >= 8, tile_m * rows / 64 * sums <= 256 with 2 consumers"),
        ({"split_k": 0}, "programs >= 1 with split_k = 0, none with split_k > 1"),
        ({"stages": 6}, "shared bytes fit a program"),
        ({"turn": 4, "split_k": 8}, "turn is one of 1, 2, 4, 8 and divides a program's steps"),
        ({"turn": 3}, "turn is one of 1, 2, 4, 8 and divides a program's steps"),
        ({"free": 2}, "early, pairs, lean, hold, free are 0 or 1"),
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


@pytest.mark.parametrize(("rows", "m", "steps", "programs"), [(200, 70, 7, 5), (4096, 512, 112, 132), (64, 3, 9, 9)])
def test_even_shares_cover_every_step_once(rows: int, m: int, steps: int, programs: int) -> None:
    """A step left out or done twice would be a wrong sum; a wrong owner, a program that waits for nobody's part."""
    pytest.importorskip("triton")
    from warptile.kernels.triton.gemm_wgmma import device_shares

    tiles = -(-rows // 128) * -(-m // 64)
    shares = [device_shares.share.fn(p, programs, m, rows, steps, 0, 128, 64) for p in range(programs)]
    assert [s for begin, end in shares for s in range(begin, end)] == list(range(tiles * steps))
    for tile in range(tiles):
        own = [p for p, (begin, end) in enumerate(shares) if begin < (tile + 1) * steps and end > tile * steps]
        assert device_shares.owners.fn(tile, programs, m, rows, steps, 0, 128, 64) == (own[0], own[-1])
    split = [device_shares.share.fn(p, tiles * 3, m, rows, steps, 3, 128, 64) for p in range(tiles * 3)]
    assert [s for begin, end in split for s in range(begin, end)] == list(range(tiles * steps))
    assert device_shares.owners.fn(1, 0, m, rows, steps, 3, 128, 64) == (3, 5)


COMPILED = """
import json, sys
from pathlib import Path
from warptile import devices, kernels, offline
from warptile.contracts import Problem
kernel, tile = kernels.parse_tile(
    "triton.gemm_wgmma:tile_m=128,tile_k=128,stages=4,split_k=0,programs=132,early=1,turn=2,free=1"
)
problem = Problem("Q4_K", 4096, 14336, 128, "bf16", "bf16")
report = offline.compile_tiles(problem, devices.by_name("h200", "cuda"), [(kernel, tile, "given")], Path(sys.argv[1]))
print(json.dumps(report.to_json()))
"""


def test_the_compiler_keeps_the_loop_in_registers(tmp_path: Path, h200: Limits) -> None:
    """Two consumers of eight matrix instructions a step, two steps a turn, nothing spilled in their loops, shared bytes
    as priced; the compiler's PTX has its marks where they are expected."""
    pytest.importorskip("triton")
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    command = [sys.executable, "-W", "ignore", "-c", COMPILED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    (tile,) = json.loads(done.stdout)["tiles"]
    assert tile["good"], tile
    (build,) = tile["builds"]
    assert build["code"]["matrix"] == 32
    assert build["code"]["loops"] >= 2
    assert build["resident_threads"] == 384
    paper = shared_bytes(WgmmaTile(128, 128, 4), Problem("Q4_K", 4096, 14336, 128, "bf16", "bf16"))
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
