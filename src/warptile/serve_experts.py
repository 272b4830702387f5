"""Serving grouped matmuls: each token by the experts that its ids name."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from warptile.contracts import Binary, Chosen, DeviceWeights, Problem, Runtime, UnusableInput, Wrong, launches_of
from warptile.layouts import PackedWeights, pack_experts
from warptile.routing import Route
from warptile.together import Product, Timed
from warptile.weights import QuantTensor

F32 = NDArray[np.float32]


@dataclass(frozen=True)
class GroupedCall:
    """The operands of one grouped matmul, checked: x[x_rows, k], ids i32[T, top_k], weights f32[T, top_k] or None."""

    problem: Problem
    x: F32
    ids: NDArray[np.int32]
    weights: F32 | None

    @classmethod
    def checked(
        cls, x: F32, w: QuantTensor, experts: int, ids: NDArray[Any], weights: NDArray[Any] | None, routing: str
    ) -> Self:
        """Raises UnusableInput for other shapes or types, and for an id outside 0 .. experts - 1."""
        rows, k = w.shape
        if experts < 1 or rows % experts:
            raise UnusableInput(f"matmul_id: a weight of {rows} rows does not hold {experts} experts of equal size")
        if not isinstance(x, np.ndarray) or x.dtype != np.float32:
            kind = f"{x.dtype} array" if isinstance(x, np.ndarray) else type(x).__name__
            raise UnusableInput(f"matmul_id takes a numpy array of float32 as x, not a {kind}")
        ids = np.asarray(ids)
        if ids.ndim != 2 or ids.dtype.kind not in "iu" or ids.shape[1] < 1:
            raise UnusableInput(f"matmul_id: ids are whole numbers [T, top_k], not {ids.dtype} {list(ids.shape)}")
        tokens, top_k = ids.shape
        if x.shape not in ((tokens, k), (tokens, top_k, k)):
            raise UnusableInput(
                f"matmul_id: x is {list(x.shape)}, ids are {list(ids.shape)}, k is {k}: x is [T, K] or [T, top_k, K]"
            )
        if weights is not None:
            weights = np.asarray(weights)
            if weights.shape != ids.shape or weights.dtype.kind != "f":
                raise UnusableInput(f"matmul_id: weights are {weights.dtype} {list(weights.shape)}, not [T, top_k]")
        outside = (ids < 0) | (ids >= experts)
        if outside.any():
            token, slot = (int(i) for i in np.argwhere(outside)[0])
            raise UnusableInput(
                f"matmul_id: ids[{token}, {slot}] is {int(ids[token, slot])}, there are experts 0 to {experts - 1};"
                f" {int(outside.sum())} of {ids.size} ids are outside"
            )
        problem = Problem(
            w.format.name,
            rows // experts,
            k,
            max(1, tokens),
            experts=experts,
            top_k=top_k,
            routing=routing or ("uniform" if experts == 1 else ""),
            x_slots=x.ndim == 3,
            summed=weights is not None,
        )
        return cls(
            problem,
            np.ascontiguousarray(x.reshape(-1, k)),
            np.ascontiguousarray(ids, np.int32),
            None if weights is None else np.ascontiguousarray(weights, np.float32),
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """y's shape: [T, top_k, N], or [T, N] where it is summed."""
        tokens, top_k = self.ids.shape
        return (tokens, self.problem.n) if self.problem.summed else (tokens, top_k, self.problem.n)

    def packed(self, w: QuantTensor, most_bytes: int, arrangement: str) -> PackedWeights:
        """The experts as a device wants them."""
        p = self.problem
        return pack_experts(w.format, w.blocks, p.experts, p.n, p.k, most_bytes, arrangement)

    def run(
        self,
        runtime: Runtime,
        route: Route,
        binary: Binary,
        weights: DeviceWeights,
        timings: list[Timed] | None = None,
    ) -> F32:
        """y, with one upload of the operands; device seconds of every launch are appended to `timings`. Raises Wrong
        where the device ran something else."""
        held: list[Any] = []

        def put(data: NDArray[Any]) -> Any:
            held.append(runtime.upload(data))
            return held[-1]

        p = self.problem
        try:
            chosen = Chosen(put(self.ids), None if self.weights is None else put(self.weights))
            y = put(np.zeros((p.y_rows, p.n), np.float32))
            launches = launches_of(route.kernel, binary, route.tile, p, put(self.x), weights, y, chosen)
            if timings is None:
                runtime.execute(launches)
            else:
                product = Product(route.kernel, route.tile, binary, p, weights)
                spent = runtime.time(launches)
                timings += [
                    Timed(product, launch.binary.id != binary.id, each)
                    for launch, each in zip(launches, spent, strict=True)
                ]
            if runtime.executed_ids() != [launch.binary.id for launch in launches]:
                raise Wrong(f"{route.tile.text()}: the device did not run the kernel that was launched")
            return runtime.download(y, np.float32, (p.y_rows, p.n)).reshape(self.shape)
        finally:
            runtime.free(held)


def matmul_id(
    x: Any,
    w: QuantTensor,
    ids: Any,
    weights: Any = None,
    *,
    experts: int,
    device: str | None = None,
    kernel: str | None = None,
    tile: str | None = None,
    routing: str = "",
) -> Any:
    """y[t, j, n] = sum_k x[t, k] * w[ids[t, j], n, k]; with `weights` y[t, n], that times weights[t, j] summed over j.

    w: a 3-D tensor of `experts` experts, as `QuantTensor.from_gguf` gives it. x: [T, K], or [T, top_k, K] with a row
    for each expert taken. routing: how tokens are taken to spread over experts, for which the table is asked; it
    changes the time, never the result.

    numpy arrays of float32 go to `Session.matmul_id` on the default session of `device`, torch tensors to
    `torch_experts.matmul_id` on their own device; an id that names no expert is refused before the launch, unless it
    lies on a device: then its row of y is 0 (`torch_experts.matmul_id`).
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        from warptile.runtimes.triton.require import require_triton

        require_triton()
        from warptile.torch_experts import matmul_id_served

        return matmul_id_served(x, w, ids, weights, experts, device, kernel, tile, routing)
    from warptile.serve import FIRST_DEVICE, default_session

    session = default_session(device or FIRST_DEVICE)
    return session.matmul_id(x, w, ids, weights, experts=experts, kernel=kernel, tile=tile, routing=routing)
