"""When a tile of `vulkan.mul_mat_vecq` is valid: its own arithmetic first, then the format, the device, the problem."""

from __future__ import annotations

from warptile import formats
from warptile.contracts import BrokenRule, Limits, Problem
from warptile.kernels.vulkan import int_dot
from warptile.kernels.vulkan.mul_mat_vecq.tile import CHUNK, MulMatVecqTile
from warptile.layouts.wide_words import ROWS

STAGING = ("shared", "scratch")
SUMS = ("shuffle", "shared")
MOST_ACCUMULATORS = 64
MOST_WORDS = 64
"""Chunks of a row that a lane loads ahead in one step: thread_n * chunks."""


def broken_rules(tile: MulMatVecqTile, problem: Problem, limits: Limits) -> list[BrokenRule]:
    """Every rule the tile breaks, each with the numbers that break it; empty when valid."""
    own = arithmetic_rules(tile)
    return own or format_rules(problem) + device_rules(tile, problem, limits) + problem_rules(tile, problem, limits)


def features(tile: MulMatVecqTile) -> frozenset[str]:
    """Device features a tile needs."""
    return int_dot.features(tile.dot) | (frozenset({"subgroup_shuffle"}) if tile.sums == "shuffle" else frozenset())


def arithmetic_rules(tile: MulMatVecqTile) -> list[BrokenRule]:
    """The rules that hold on any device and problem."""
    broken: list[BrokenRule] = []

    def rule(holds: bool, text: str, numbers: str) -> None:
        if not holds:
            broken.append(BrokenRule(text, numbers))

    fields = tile.fields()
    for name, words in (("staging", STAGING), ("sums", SUMS), ("dot", int_dot.DOTS)):
        rule(fields[name] in words, f"{name} is {' or '.join(words)}", f"{name} {fields[name]}")
    counts = ("lanes_n", "split_k", "thread_n", "columns", "chunks")
    below = ", ".join(f"{name} {fields[name]}" for name in counts if int(fields[name]) < 1)
    rule(not below, "every count of a tile is at least 1", below)
    rule(tile.load_n in ROWS, "load_n is 1, 2 or 4", f"{tile.load_n}")
    rule(tile.prefetch in (0, 1), "prefetch is 0 or 1", f"{tile.prefetch}")
    if broken:
        return broken
    rule(tile.thread_n % tile.load_n == 0, "thread_n % load_n = 0", f"{tile.thread_n} % {tile.load_n}")
    rule(
        tile.accumulators <= MOST_ACCUMULATORS,
        f"thread_n * columns <= {MOST_ACCUMULATORS} accumulators",
        f"{tile.thread_n} * {tile.columns} = {tile.accumulators}",
    )
    rule(
        tile.thread_n * tile.chunks <= MOST_WORDS,
        f"thread_n * chunks <= {MOST_WORDS} chunks of a row in a step",
        f"{tile.thread_n} * {tile.chunks} = {tile.thread_n * tile.chunks}",
    )
    if tile.sums == "shuffle":
        power = tile.lanes_n & (tile.lanes_n - 1) == 0
        rule(power, "sums shuffle: lanes_n is a power of two", f"lanes_n {tile.lanes_n}")
    return broken


def format_rules(problem: Problem) -> list[BrokenRule]:
    """The rule a format sets."""
    layout = formats.by_name(problem.format).layout
    if layout.has_int8:
        return []
    return [BrokenRule("codes less their offset are signed bytes", f"{problem.format} is {layout.name}")]


def device_rules(tile: MulMatVecqTile, problem: Problem, limits: Limits) -> list[BrokenRule]:
    """The rules a device sets: a tile that breaks only these is valid elsewhere."""
    broken: list[BrokenRule] = []

    def rule(holds: bool, text: str, numbers: str) -> None:
        if not holds:
            broken.append(BrokenRule(text, numbers, well_formed=True))

    for feature in sorted(features(tile)):
        has = ", ".join(sorted(limits.features)) or "none"
        rule(limits.has(feature), f"needs feature {feature}", f"the device has {has}")
    rule(
        tile.workgroup <= limits.max_workgroup,
        "lanes_n * split_k <= largest workgroup",
        f"{tile.workgroup} > {limits.max_workgroup}",
    )
    rule(
        tile.workgroup % limits.subgroup == 0,
        "whole subgroups a workgroup",
        f"{tile.workgroup} % {limits.subgroup} = {tile.workgroup % limits.subgroup}",
    )
    needed = tile.shared_bytes(problem.k, limits.subgroup)
    rule(
        needed <= limits.shared_bytes,
        "shared bytes <= shared bytes of a workgroup",
        f"{needed} > {limits.shared_bytes}",
    )
    return broken


def problem_rules(tile: MulMatVecqTile, problem: Problem, limits: Limits) -> list[BrokenRule]:
    """The rules a problem sets, on this device's grid."""
    broken: list[BrokenRule] = []

    def rule(holds: bool, text: str, numbers: str, well_formed: bool = False) -> None:
        if not holds:
            broken.append(BrokenRule(text, numbers, well_formed))

    rule(problem.k % CHUNK == 0, f"k % {CHUNK} = 0", f"k {problem.k}")
    rule(problem.n % tile.load_n == 0, "n % load_n = 0", f"{problem.n} % {tile.load_n}")
    rule(not problem.grouped, "experts = 1: one dense matmul", f"experts {problem.experts}")
    dtypes = f"x {problem.x_dtype}, y {problem.y_dtype}"
    rule(problem.x_dtype == problem.y_dtype == "fp32", "x and y are fp32", dtypes)
    chunks = problem.k // CHUNK
    parts = -(-chunks // tile.chunks)
    rule(tile.split_k <= parts, "every part of k has a chunk", f"split_k {tile.split_k}, {chunks} chunks")
    for axis, size, most in zip("xyz", tile.grid(problem.n, problem.m), limits.max_grid, strict=True):
        rule(size <= most, f"grid {axis} <= largest grid {axis}", f"{size} > {most}", True)
    return broken
