"""A model's matmuls as a card is asked for them: weights that take the same input are one matrix."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from warptile.contracts.problem import Workload, WorkloadRow
from warptile.gguf import open_gguf

SAME_INPUT = (("attn_q", "attn_k", "attn_v"), ("ffn_gate", "ffn_up"))
"""Tensors of a layer that take the same input, in the order in which they are joined."""

Matrix = tuple[str, int, int]
"""(format, n, k)."""

_LAYER = re.compile(r"blk\.(\d+)\.(\w+)\.weight")


def as_served(workload: Workload, device: str) -> Workload:
    """`joined` where `warptile.load` would join: a model of an architecture it knows, on a card through torch."""
    from warptile.model.architectures import ARCHITECTURES

    if device.partition(":")[0] not in ("cuda", "hip", "interpreter") or not Path(workload.source).is_file():
        return workload
    if Path(workload.source).suffix.lower() == ".toml":
        return workload
    known = open_gguf(workload.source).metadata.get("general.architecture") in ARCHITECTURES
    return joined(workload) if known else workload


def joined(workload: Workload) -> Workload:
    """The workload with neighbours of `SAME_INPUT` that share format and k as one row of all their n, as
    `model.cuda.TorchGroup` packs them.

    A joined row is counted once a layer and names no tensor: no single one of the file is it. What is left of the other
    rows keeps their order.
    """
    joins = list(_joins(workload))
    taken = {name for join in joins for name in join}
    if not taken:
        return workload
    owner = _owners(workload)
    found: Counter[Matrix] = Counter()
    sizes: dict[Matrix, int] = {}
    for rows in ([owner[name] for name in join] for join in joins):
        key = rows[0].format, sum(row.n for row in rows), rows[0].k
        found[key] += 1
        sizes[key] = sum(row.nbytes // max(1, row.times) for row in rows)
    kept = [_without(row, taken) for row in workload.rows]
    whole = [WorkloadRow(*key, "linear", (), sizes[key] * count, count=count) for key, count in found.items()]
    rest = [row for row in kept if row is not None]
    outputs = [row for row in rest if row.role == "output"]
    others = [row for row in rest if row.role != "output"]
    return dataclasses.replace(workload, rows=(*others, *whole, *outputs))


def largest_parts(workload: Workload) -> dict[Matrix, int]:
    """Of each matrix that `joined` makes of a workload, the rows of its largest part."""
    owner = _owners(workload)
    found: dict[Matrix, int] = {}
    for rows in ([owner[name] for name in join] for join in _joins(workload)):
        found[rows[0].format, sum(row.n for row in rows), rows[0].k] = max(row.n for row in rows)
    return found


def _joins(workload: Workload) -> Iterator[list[str]]:
    owner = _owners(workload)
    for layer in sorted({int(match[1]) for name in owner if (match := _LAYER.fullmatch(name))}):
        for stems in SAME_INPUT:
            yield from _runs([f"blk.{layer}.{stem}.weight" for stem in stems], owner)


def _owners(workload: Workload) -> dict[str, WorkloadRow]:
    return {name: row for row in workload.rows if row.role == "linear" for name in row.tensors}


def _runs(names: list[str], owner: dict[str, WorkloadRow]) -> list[list[str]]:
    """Neighbours of one format and k, two or more; a tensor that is not packed does not lie between them."""
    runs: list[list[str]] = []
    for name in names:
        if name not in owner:
            continue
        row = owner[name]
        if runs and (row.format, row.k) == (owner[runs[-1][-1]].format, owner[runs[-1][-1]].k):
            runs[-1].append(name)
        else:
            runs.append([name])
    return [run for run in runs if len(run) > 1]


def _without(row: WorkloadRow, taken: set[str]) -> WorkloadRow | None:
    """The row without tensors that others joined; None where none is left."""
    left = tuple(name for name in row.tensors if name not in taken)
    if left == row.tensors:
        return row
    return dataclasses.replace(row, tensors=left, nbytes=row.nbytes // len(row.tensors) * len(left)) if left else None
