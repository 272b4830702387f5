"""Serving: y = x w^T with the kernel and tile that the table holds for this device."""

from __future__ import annotations

import atexit
import functools
import sys
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from warptile.contracts import (
    Binary,
    DeviceWeights,
    DoesNotFit,
    InvalidTile,
    Kernel,
    Problem,
    Runtime,
    Tile,
    UnusableInput,
    Wrong,
)
from warptile.kernels import by_name, parse_tile
from warptile.layouts import packer, upload
from warptile.places import Places
from warptile.routing import Notices, Route, UntunedWarning, route, tables_of
from warptile.runtimes import open_device
from warptile.search import rank_all
from warptile.serve_experts import GroupedCall
from warptile.together import Product, Timed, Together
from warptile.weights import QuantTensor

FIRST_DEVICE = "vulkan:0"

INVARIANT_TOKENS = 64

_Kept = int | tuple[int, int]
"""What a weight lies on the device under: its id; with the number of experts where those are packed."""

__all__ = ["FIRST_DEVICE", "Placed", "Route", "Session", "UntunedWarning", "default_session", "matmul"]


@dataclass(frozen=True, eq=False)
class Placed:
    """A weight w[n, k] that a session keeps on its device while this object lives; see `Session.place`."""

    format: str
    n: int
    k: int


class Session:
    """An open device with its table, the weights put on it and the kernels compiled so far.

    A weight stays on the device until it is garbage on the host. The table is read once, when the session opens.
    Threads may share it: one matmul runs at a time. Raises UnusableInput where the device, a folder or the table cannot
    be used.
    """

    def __init__(self, device: str = FIRST_DEVICE, places: Places | None = None) -> None:
        kept = (places or Places.default()).ready()
        self.runtime: Runtime = open_device(device, kept)
        self.tables = tables_of(kept.state, self.runtime.identity())
        self._together = Together(self.runtime)
        self._chosen: dict[tuple[Problem, bool], tuple[Route, Binary]] = {}
        self._weights: dict[_Kept, DeviceWeights] = {}
        self._routes: dict[Problem, Route] = {}
        self._notices = Notices()
        self._garbage: deque[_Kept] = deque()
        # Not reentrant: a weight may become garbage inside a matmul, and must not be freed while launches are recorded.
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give everything on the device back, and the device. A second call does nothing."""
        with self._lock:
            self._closed = True
            self._weights.clear()
            self.runtime.close()

    def matmul(
        self, x: NDArray[np.float32], w: QuantTensor, kernel: str | None = None, tile: str | None = None
    ) -> NDArray[np.float32]:
        """y[..., n] = sum_k x[..., k] * w[n, k], in fp32. x: float32[..., K].

        kernel, tile: forced; a tile alone must name its kernel. Raises UnusableInput for another K or dtype, an unknown
        kernel or tile, a closed session; InvalidTile or DoesNotFit, with the rule broken, where a forced one cannot
        run; and what the runtime raises. Otherwise the table decides, with an UntunedWarning once a matmul where it
        holds nothing valid.
        """
        return self._matmul(x, w, kernel, tile)

    def _matmul(
        self, x: NDArray[np.float32], w: QuantTensor, kernel: str | None, tile: str | None
    ) -> NDArray[np.float32]:
        n, k = w.shape
        if not isinstance(x, np.ndarray) or x.dtype != np.float32:
            kind = f"{x.dtype} array" if isinstance(x, np.ndarray) else type(x).__name__
            raise UnusableInput(f"matmul takes a numpy array of float32 as x, not a {kind}")
        if x.ndim < 1 or x.shape[-1] != k:
            raise UnusableInput(f"matmul: x is {list(x.shape)}, but w[n, k] is {[n, k]}: the last axis must be {k}")
        rows = np.ascontiguousarray(x.reshape(-1, k))
        y = np.empty((len(rows), n), np.float32)
        problem = Problem(w.format.name, n, k, max(1, len(rows)))
        with self._lock:
            self._refuse_closed()
            self._collect()
            chosen = self._forced(problem, kernel, tile) if kernel or tile else self._routed(problem)
            if len(rows):
                weights = self._on_device(w)
                step = max(1, self.runtime.limits().max_buffer_bytes // (4 * max(n, k)))
                for start in range(0, len(rows), step):
                    part = rows[start : start + step]
                    y[start : start + step] = self._run(chosen, problem.at(len(part)), part, weights)
        return y.reshape(*x.shape[:-1], n)

    def matmul_id(
        self,
        x: NDArray[np.float32],
        w: QuantTensor,
        ids: NDArray[Any],
        weights: NDArray[Any] | None = None,
        *,
        experts: int,
        kernel: str | None = None,
        tile: str | None = None,
        routing: str = "",
        timings: list[Timed] | None = None,
    ) -> NDArray[np.float32]:
        """Each token by the experts that its ids name: see `serve_experts.matmul_id`; timings as in `matmuls`.

        Raises UnusableInput for an id that names no expert, for other shapes or types, and as `matmul`.
        """
        call = GroupedCall.checked(x, w, experts, ids, weights, routing)
        with self._lock:
            self._refuse_closed()
            self._collect()
            chosen = self._forced(call.problem, kernel, tile) if kernel or tile else self._routed(call.problem)
            if not len(call.ids):
                return np.zeros(call.shape, np.float32)
            # Packed otherwise than for a dense matmul, and for another number of experts, so under a key of its own.
            key = (id(w), experts)
            if key not in self._weights:
                limits = self.runtime.limits()
                packed = call.packed(w, limits.max_buffer_bytes, limits.arrangement)
                self._weights[key] = upload(self.runtime, packed)
                weakref.finalize(w, _forget, weakref.ref(self), key)
            binary = self._compiled(chosen.kernel, chosen.tile, call.problem)
            return call.run(self.runtime, chosen, binary, self._weights[key], timings)

    def place(self, w: QuantTensor) -> Placed:
        """Pack a weight and put it on the device now; the host's blocks are not needed afterwards.

        Raises UnusableInput for a closed session and a weight too wide for a buffer, and what the runtime raises.
        """
        placed = Placed(w.format.name, *w.shape)
        with self._lock:
            self._refuse_closed()
            self._collect()
            self._weights[id(placed)] = packer(self.runtime, w.format, w.blocks, *w.shape)()
            weakref.finalize(placed, _forget, weakref.ref(self), id(placed))
        return placed

    def matmuls(
        self,
        x: NDArray[np.float32],
        weights: Sequence[Placed],
        batch_invariant: bool = False,
        timings: list[Timed] | None = None,
    ) -> list[NDArray[np.float32]]:
        """y_i[m, n_i] = x w_i^T in fp32, all in one submission; activations are quantized once where kernels share it.

        x: float32[m, K]. batch_invariant: the tile that serves `INVARIANT_TOKENS` tokens serves any number, so that a
        row's result does not depend on the rows beside it. timings: device seconds of every launch are appended to it.
        Raises UnusableInput for another K, dtype or a closed session, and what the runtime raises.
        """
        k = weights[0].k
        if x.dtype != np.float32 or x.ndim != 2 or any(w.k != x.shape[1] for w in weights):
            raise UnusableInput(f"matmuls: x is {x.dtype}{list(x.shape)}, but the weights take float32[m, {k}]")
        out = [np.empty((len(x), w.n), np.float32) for w in weights] if len(x) == 0 else []
        with self._lock:
            self._refuse_closed()
            self._collect()
            widest = max(k, *(w.n for w in weights))
            step = max(1, self.runtime.limits().max_buffer_bytes // (4 * widest))
            parts = []
            for start in range(0, len(x), step):
                rows = np.ascontiguousarray(x[start : start + step])
                products = [self._product(w, len(rows), batch_invariant) for w in weights]
                if timings is None:
                    parts.append(self._together.run(rows, products))
                else:
                    found, timed = self._together.time(rows, products)
                    parts.append(found)
                    timings += timed
        if len(parts) == 1:
            return parts[0]
        return out or [np.concatenate([part[i] for part in parts]) for i in range(len(weights))]

    def _product(self, w: Placed, m: int, batch_invariant: bool) -> Product:
        problem = Problem(w.format, w.n, w.k, m)
        found = self._chosen.get((problem, batch_invariant))
        if found is None:
            served = self._routed(problem.at(INVARIANT_TOKENS) if batch_invariant else problem)
            if broken := served.kernel.broken_rules(served.tile, problem, self.runtime.limits()):
                raise UnusableInput(f"{served.tile.text()} cannot serve {problem.text()}: {broken[0].text()}")
            found = (served, self._compiled(served.kernel, served.tile, problem))
            self._chosen[problem, batch_invariant] = found
        served, binary = found
        return Product(served.kernel, served.tile, binary, problem, self._weights[id(w)])

    def route(self, problem: Problem) -> Route:
        """What the table serves for a problem; the best-priced valid tile, "untuned", where it has nothing usable.

        Untuned, activations stay as they are: nobody has asked for a kernel that quantizes them.
        """
        with self._lock:
            self._refuse_closed()
            return self._route(problem)

    def _refuse_closed(self) -> None:
        if self._closed:
            raise UnusableInput("this session is closed: open another")

    def _route(self, problem: Problem) -> Route:
        return route(problem, self.tables, self.runtime.limits(), self._key)

    def _routed(self, problem: Problem) -> Route:
        found = self._routes.get(problem)
        if found is None:
            found = self._routes[problem] = self._route(problem)
        self._notices.say(problem, found)
        return found

    def _forced(self, problem: Problem, kernel: str | None, tile: str | None) -> Route:
        limits = self.runtime.limits()
        if tile is not None:
            found, parsed = parse_tile(tile, kernel)
            self._own(found)
            if broken := found.broken_rules(parsed, problem, limits):
                kind = DoesNotFit if all(rule.well_formed for rule in broken) else InvalidTile
                first = next((rule for rule in broken if not rule.well_formed), broken[0])
                raise kind(first.rule, first.numbers)
            return Route(found, parsed, "forced")
        found = by_name(kernel or "")
        self._own(found)
        ranking = rank_all(problem, limits, [found])
        if not ranking.candidates:
            rules = "; ".join(rule for _, rule in list(ranking.rejected)[:2])
            raise InvalidTile(rules or "the kernel has a tile for this matmul", f"{found.name} on {problem.text()}")
        return Route(found, ranking.candidates[0].tile, "forced")

    def _own(self, kernel: Kernel) -> None:
        if kernel.runtime != self.runtime.name:
            raise UnusableInput(f"kernel {kernel.name} does not run through {self.runtime.name}")

    def _compiled(self, kernel: Kernel, tile: Tile, problem: Problem) -> Binary:
        return self.runtime.compile(kernel.source(tile, problem, self.runtime.limits()))

    def _key(self, kernel: Kernel, tile: Tile, problem: Problem) -> str:
        return self._compiled(kernel, tile, problem).key

    def _on_device(self, w: QuantTensor) -> DeviceWeights:
        if id(w) not in self._weights:
            self._weights[id(w)] = packer(self.runtime, w.format, w.blocks, *w.shape)()
            weakref.finalize(w, _forget, weakref.ref(self), id(w))
        return self._weights[id(w)]

    def drop(self, key: _Kept) -> None:
        """Free the weight that the session keeps under `key`, where it still does; after the matmul that runs now."""
        self._garbage.append(key)
        if self._lock.acquire(blocking=False):
            try:
                self._collect()
            finally:
                self._lock.release()

    def _collect(self) -> None:
        while self._garbage:
            weights = self._weights.pop(self._garbage.popleft(), None)
            if weights is not None:
                self.runtime.free(list({id(s.buffer): s.buffer for s in weights.slices}.values()))

    def _run(
        self, route: Route, problem: Problem, x: NDArray[np.float32], weights: DeviceWeights
    ) -> NDArray[np.float32]:
        binary = self._compiled(route.kernel, route.tile, problem)
        held: list[Any] = []
        try:
            held.append(self.runtime.upload(x))
            held.append(self.runtime.upload(np.zeros((problem.m, problem.n), np.float32)))
            launches = route.kernel.launch(binary, route.tile, problem, held[0], weights, held[1])
            self.runtime.execute(launches)
            if self.runtime.executed_ids() != [launch.binary.id for launch in launches]:
                raise Wrong(f"{route.tile.text()}: the device did not run the kernel that was launched")
            return self.runtime.download(held[1], np.float32, (problem.m, problem.n))
        finally:
            self.runtime.free(held)


def _forget(session: weakref.ref[Session], key: _Kept) -> None:
    alive = session()
    if alive is not None:
        alive.drop(key)


@functools.cache
def default_session(device: str) -> Session:
    """The session `matmul` uses for a device: one a process and device text, opened on first use, closed at exit."""
    session = Session(device)
    atexit.register(session.close)
    return session


def matmul(
    x: Any,
    w: QuantTensor,
    device: str | None = None,
    kernel: str | None = None,
    tile: str | None = None,
) -> Any:
    """y[..., n] = sum_k x[..., k] * w[n, k] with the kernel and tile that the table holds.

    x: a numpy array of float32: `Session.matmul` on the default session of `device` (the first Vulkan device where none
    is named). Or a torch tensor of fp16, bf16 or fp32 on a CUDA or ROCm device: `torch_ops.matmul_served` there; y is
    such a tensor, and a `device` that is named must be x's own. Raises MissingExtra where Triton is not installed.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        from warptile.runtimes.triton.require import require_triton

        require_triton()
        from warptile.torch_ops import matmul_served

        return matmul_served(x, w, device, kernel, tile)
    return default_session(device or FIRST_DEVICE)._matmul(x, w, kernel, tile)
