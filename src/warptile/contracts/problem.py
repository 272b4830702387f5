"""The matmuls a model asks for: y[m, n] = sum_k x[m, k] * w[n, k], or the same by each token's own experts."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Problem:
    """One quantized matmul: y[m, n] = sum_k x[m, k] * w[n, k], w packed in `format`.

    m: tokens; n: weight rows; k: weight columns (a multiple of the format's block size).
    experts, top_k: 1 for a dense matmul. count: how often one pass over the model asks for it.

    A grouped matmul has w[experts, n, k] and takes top_k experts a token: y[m, top_k, n] = sum_k x[m, k] *
    w[ids[m, top_k], n, k]. routing: how tokens are taken to spread over experts ("uniform", "zipf:S", "recorded:...";
    see `workloads.experts`), "" for a dense matmul, or uniform where experts > 1. x_slots: x is [m, top_k, k], a row
    for each expert taken. summed: y is [m, n], the sum over a token's experts, each times its weight.
    """

    format: str
    n: int
    k: int
    m: int
    x_dtype: str = "fp32"
    y_dtype: str = "fp32"
    experts: int = 1
    top_k: int = 1
    count: int = 1
    routing: str = ""
    x_slots: bool = False
    summed: bool = False

    @property
    def grouped(self) -> bool:
        """Whether each token takes experts of its own."""
        return self.experts > 1 or bool(self.routing)

    @property
    def slots(self) -> int:
        """Rows of weights' products: m * top_k."""
        return self.m * self.top_k

    @property
    def x_rows(self) -> int:
        """Rows of x."""
        return self.slots if self.x_slots else self.m

    @property
    def y_rows(self) -> int:
        """Rows of y."""
        return self.m if self.summed else self.slots

    @property
    def flops(self) -> int:
        """Floating-point operations of one run: 2 * m * top_k * n * k."""
        return 2 * self.slots * self.n * self.k

    def at(self, m: int) -> Problem:
        """The same matmul for another number of tokens."""
        return dataclasses.replace(self, m=m)

    def text(self) -> str:
        """`FORMAT n=N k=K m=M`, plus experts where there are any."""
        experts = f" experts={self.experts} top_k={self.top_k}" if self.grouped else ""
        flags = f"{' x=slots' if self.x_slots else ''}{' y=sum' if self.summed else ''}"
        routing = f" routing={self.routing[:24]}" if self.routing else ""
        return f"{self.format} n={self.n} k={self.k} m={self.m}{experts}{flags}{routing}"


@dataclass(frozen=True)
class WorkloadRow:
    """A group of tensors that ask for the same matmul.

    role: "linear"; "output" (runs for one row of a prefill: only the last token's logits are needed);
    "experts" (3-D, grouped; x is a row a token) or "experts_down" (grouped; x is a row for each expert that a token
    takes, and y is summed by weight). tensors: their names in the file. nbytes: their packed bytes, all together.
    m: 0, or the only m a shape file wants the row at. count: 0, or what a shape file counts. routing: of grouped rows,
    as in `Problem`.
    """

    format: str
    n: int
    k: int
    role: str
    tensors: tuple[str, ...]
    nbytes: int
    experts: int = 1
    top_k: int = 1
    m: int = 0
    count: int = 0
    routing: str = ""

    @property
    def times(self) -> int:
        """How often one pass asks for it: `count` where a shape file says, else one a tensor."""
        return self.count or len(self.tensors)


@dataclass(frozen=True)
class Workload:
    """Every matmul of one model or shape file.

    unsupported: (type name, number of tensors, share of the file's tensor bytes) without a kernel.
    source: the path or shape-file name it came from.
    """

    name: str
    source: str
    rows: tuple[WorkloadRow, ...]
    unsupported: tuple[tuple[str, int, float], ...] = ()

    def routed(self, routing: str) -> Workload:
        """The same model with tokens spread over experts as `routing` says."""
        rows = tuple(dataclasses.replace(r, routing=routing) if r.role.startswith("experts") else r for r in self.rows)
        return dataclasses.replace(self, rows=rows)

    def problems(self, m: int) -> tuple[Problem, ...]:
        """The problems of one pass over m tokens; the output matmul runs for one row."""
        merged: dict[Problem, int] = {}
        for row in self.rows:
            rows_m = row.m or (1 if row.role == "output" else m)
            down = row.role == "experts_down"
            key = Problem(
                row.format,
                row.n,
                row.k,
                rows_m,
                experts=row.experts,
                top_k=row.top_k,
                routing=row.routing,
                x_slots=down,
                summed=down,
            )
            merged[key] = merged.get(key, 0) + row.times
        return tuple(dataclasses.replace(p, count=c) for p, c in merged.items())
