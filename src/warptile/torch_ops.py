"""y = x w^T on torch tensors, weights kept packed: a custom op that eager, torch.compile and CUDA graphs treat alike.

Needs the extra `torch`. Importing this module registers the op `torch.ops.warptile.matmul`.
"""

from __future__ import annotations

import weakref
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch

from warptile import formats
from warptile.contracts import Limits, Problem, UnusableInput
from warptile.layouts.triton import arrangement
from warptile.layouts.triton.repack import repack
from warptile.places import Places
from warptile.routing import KeyOf, Notices, Route, route, tables_of
from warptile.runtimes.entry import pick
from warptile.runtimes.triton import list_devices
from warptile.runtimes.triton.engine import DTYPES, Engine, Router, engine_of, interpreting
from warptile.runtimes.triton.memory import to_tensor
from warptile.tables import Table
from warptile.weights import QuantTensor

ALIGN_BYTES = 16


@dataclass(frozen=True)
class TorchWeight:
    """A weight w[n, k] packed on a torch device. words: i32 quad words (`layouts.triton`)."""

    words: torch.Tensor = field(repr=False)
    format: str
    n: int
    k: int

    @classmethod
    def pack(cls, w: QuantTensor, device: torch.device | str) -> TorchWeight:
        """Copy a weight's file blocks to `device` and pack them there.

        Raises UnusableInput where it is too large, and for a device that is not here or is none.
        """
        try:
            at = torch.device(device)
        except RuntimeError:
            raise UnusableInput(f"torch knows no device {device!r}: write cuda or cuda:N") from None
        n, k = w.shape
        limits = engine_of(at).limits
        needed = arrangement(w.format.layout, k).offsets(n)[1] * 4
        if needed > limits.max_buffer_bytes:
            raise UnusableInput(
                f"weight {w.format.name} [{n}, {k}] takes {needed} bytes; {limits.max_buffer_bytes} fit"
            )
        source = to_tensor(w.blocks).to(at)
        with current(at):
            words = repack(w.format, source, n, k)
            # A launch that starts early waits for the launch before it only, and reads weights before it does: this one
            # lies between.
            torch.zeros(1, dtype=torch.int32, device=at)
            return cls(words, w.format.name, n, k)


def matmul_torch(
    x: torch.Tensor,
    w: QuantTensor | TorchWeight,
    *,
    kernel: str | None = None,
    tile: str | None = None,
    batch_invariant: bool = False,
) -> torch.Tensor:
    """y[..., n] = sum_k x[..., k] * w[n, k], in x's type (fp16, bf16 or fp32), sums in fp32.

    x: on a CUDA or ROCm device, with any strides. A `QuantTensor` is packed on x's device at first use and kept while
    it lives. kernel, tile: forced; a tile alone must name its kernel. batch_invariant: a row's result is the same to
    the bit whatever rows it is computed with. Nothing waits for the device; work is on the current stream of x's
    device.

    Raises UnusableInput for another K or type, a tensor on the host or on another device than w, an unknown kernel or
    tile, and InvalidTile or DoesNotFit where a forced tile cannot run.
    """
    if not isinstance(w, QuantTensor | TorchWeight):
        raise UnusableInput(f"a weight is a QuantTensor or a TorchWeight, not a {type(w).__name__}")
    if not isinstance(x, torch.Tensor):
        raise UnusableInput(f"matmul takes a torch tensor as x, not a {type(x).__name__}")
    packed = w if isinstance(w, TorchWeight) else _packed(w, x.device)
    _check_x(x, packed.words.device, packed.n, packed.k)
    if tile is not None and ":" not in tile:
        if kernel is None:
            raise UnusableInput(f"tile {tile!r} names no kernel: write KERNEL:field=value,... or give the kernel")
        tile = f"{kernel}:{tile}"
    elif tile is None and kernel is not None:
        tile = best_of(engine_of(x.device), kernel, _problem(x, packed.format, packed.n, packed.k))
    if batch_invariant and tile is not None:
        raise UnusableInput("batch_invariant chooses its own tile: leave kernel and tile out")
    arguments = (packed.words, packed.format, packed.n, packed.k, tile or "", batch_invariant)
    if _unwatched(x):
        _check_words(packed.words, packed.format, packed.n, packed.k)
        return _product(x, *arguments)
    y: torch.Tensor = torch.ops.warptile.matmul(x, *arguments)
    return y


def _unwatched(x: torch.Tensor) -> bool:
    """Whether nobody would see an operator: no compiler, gradient, subclass, mode, transform or profiler. Calling one
    takes the host longer than the launch."""
    return (
        not torch.compiler.is_compiling()
        and type(x) in (torch.Tensor, torch.nn.Parameter)
        and not (x.requires_grad and torch.is_grad_enabled())
        and not torch.autograd._profiler_enabled()
        and torch._C._len_torch_dispatch_stack() == 0
        and torch._C._functorch.peek_interpreter_stack() is None
    )


def matmul_served(
    x: torch.Tensor,
    w: QuantTensor | TorchWeight,
    device: str | None = None,
    kernel: str | None = None,
    tile: str | None = None,
    places: Places | None = None,
) -> torch.Tensor:
    """`matmul_torch` on x's own device, routed by the tables of that device, with an UntunedWarning once a matmul where
    they hold nothing valid. They are read once a process and device, from `places` as they are then.

    Raises UnusableInput as `matmul_torch`, and where `device` names another device than x's.
    """
    refuse_other_device(x, device)
    serve_from_tables(x.device, places)
    return matmul_torch(x, w, kernel=kernel, tile=tile)


def refuse_other_device(x: torch.Tensor, device: str | None) -> None:
    """Raise UnusableInput where x is on the host, or `device` names another device than x's."""
    if x.device.type != "cuda" and not interpreting():
        raise UnusableInput(f"x is a tensor on {x.device}: move it to a CUDA or ROCm device, or pass a numpy array")
    if device is not None and not _names(device, x.device):
        raise UnusableInput(f"x is on {x.device}, device {device!r} was asked for")


def serve_from_tables(device: torch.device, places: Places | None = None) -> TableRouter:
    """Let a device's tables say which tile serves a matmul, with an UntunedWarning once where they hold nothing valid.

    They are read once a process and device, from `places` as they are then. Raises UnusableInput as `engine_of`, and
    where a table cannot be used.
    """
    engine = engine_of(device)
    found = next((router for router in engine.routers if isinstance(router, TableRouter)), None)
    if found is None:
        kept = (places or Places.default()).ready()
        found = TableRouter(tables_of(kept.state, engine.backend.identity()), engine.limits, engine.key)
        engine.routers.append(found)
    return found


def _names(text: str, device: torch.device) -> bool:
    """Whether `cuda`, `cuda:1`, `hip:0` or part of a card's name, after its prefix, means a torch device."""
    if device.type == "cpu":
        return text.partition(":")[0] == "interpreter"
    entries = [e for e in list_devices() if e.runtime == "triton"]
    prefix = text.partition(":")[0]
    if not entries or prefix != entries[0].id.partition(":")[0]:
        return False
    index = torch.cuda.current_device() if device.index is None else device.index
    return entries[pick(text, entries)].id == f"{prefix}:{index}"


class TableRouter:
    """Asks the tables of a device; the engine's own choice serves where they know nothing of a matmul."""

    def __init__(self, tables: tuple[Table, ...], limits: Limits, key_of: KeyOf) -> None:
        self._tables, self._limits, self._key_of = tables, limits, key_of
        self._notices = Notices()

    def __call__(self, problem: Problem) -> str:
        """The tile's text. Raises UnusableInput where no kernel can serve the problem."""
        found = self.route(problem)
        self._notices.say(problem, found, stacklevel=2)
        return found.tile.text()

    def route(self, problem: Problem) -> Route:
        """What the tables serve, or the best price. Raises UnusableInput as `route`."""
        return route(problem, self._tables, self._limits, self._key_of)


def add_router(device: torch.device | str, router: Router) -> None:
    """Ask `router` first which tile serves a problem on a device; it returns None where it does not know."""
    engine_of(torch.device(device)).routers.insert(0, router)


@torch.library.custom_op("warptile::matmul", mutates_args=())
def _matmul(
    x: torch.Tensor, words: torch.Tensor, format: str, n: int, k: int, tile: str, batch_invariant: bool
) -> torch.Tensor:
    """The op behind `matmul_torch`. tile: "" where the table decides."""
    _check(x, words, format, n, k)
    return _product(x, words, format, n, k, tile, batch_invariant)


def _product(
    x: torch.Tensor, words: torch.Tensor, format: str, n: int, k: int, tile: str, batch_invariant: bool
) -> torch.Tensor:
    """The op of operands that were checked."""
    y = x.new_empty((*x.shape[:-1], n))
    if y.numel() == 0:
        return y
    engine = engine_of(x.device)
    rows = _rows(x, k)
    problem = _problem(rows, format, n, k)
    with current(x.device):
        text = engine.invariant_tile(problem) if batch_invariant else tile or engine.tile(problem)
        engine.run(engine.prepared(problem, text), rows, words, y.view(-1, n))
    return y


@_matmul.register_fake
def _matmul_shape(
    x: torch.Tensor, words: torch.Tensor, format: str, n: int, k: int, tile: str, batch_invariant: bool
) -> torch.Tensor:
    _check(x, words, format, n, k)
    return x.new_empty((*x.shape[:-1], n))


@cache
def _words_of(format: str, n: int, k: int) -> int:
    """Words of a packed weight. Raises UnusableInput for an unknown format or a k that it does not allow."""
    return arrangement(formats.by_name(format).layout, k).offsets(n)[1]


def _check_x(x: torch.Tensor, device: torch.device, n: int, k: int) -> None:
    """What torch.compile can trace; the op and its fake ask it too, and `_check` the rest."""
    if x.layout is not torch.strided:
        raise UnusableInput(f"matmul takes a strided tensor as x, not a {x.layout} one")
    if x.dtype not in DTYPES:
        raise UnusableInput(f"matmul takes fp16, bf16 or fp32 as x, not {x.dtype}")
    if x.dim() < 1 or x.shape[-1] != k:
        raise UnusableInput(f"matmul: x is {list(x.shape)}, but w[n, k] is {[n, k]}: the last axis must be {k}")
    if x.device != device:
        raise UnusableInput(f"matmul: x is on {x.device}, w on {device}")


def _check(x: torch.Tensor, words: torch.Tensor, format: str, n: int, k: int) -> None:
    _check_x(x, words.device, n, k)
    _check_words(words, format, n, k)


def _check_words(words: torch.Tensor, format: str, n: int, k: int) -> None:
    if words.dtype != torch.int32 or not words.is_contiguous():
        raise UnusableInput(f"packed words are contiguous int32, not {words.dtype} with strides {words.stride()}")
    if words.numel() < (needed := _words_of(format, n, k)):
        raise UnusableInput(f"weight {format} [{n}, {k}] takes {needed} packed words; there are {words.numel()}")


def _rows(x: torch.Tensor, k: int) -> torch.Tensor:
    """x as [m, k] with unit stride along k and rows that start at multiples of 16 bytes; a copy only where it must
    be."""
    rows = x if x.dim() == 2 else x.reshape(-1, k)
    size = x.element_size()
    if rows.stride(1) != 1 or rows.stride(0) * size % ALIGN_BYTES or rows.stride(0) >= 1 << 31:
        rows = rows.contiguous()
    if rows.data_ptr() % ALIGN_BYTES or rows.stride(1) != 1 or rows.stride(0) * size % ALIGN_BYTES:
        rows = rows.clone(memory_format=torch.contiguous_format)
    return rows


def _problem(x: torch.Tensor, format: str, n: int, k: int) -> Problem:
    dtype = DTYPES[x.dtype]
    return Problem(format, n, k, max(1, x.numel() // k), dtype, dtype)


def best_of(engine: Engine, kernel: str, problem: Problem) -> str:
    """The best-priced valid tile of a kernel. Raises UnusableInput where it has none."""
    from warptile import kernels
    from warptile.search import rank_all

    ranking = rank_all(problem, engine.limits, [kernels.by_name(kernel)])
    if not ranking.candidates:
        raise UnusableInput(f"kernel {kernel} has no valid tile for {problem.text()} here")
    return ranking.candidates[0].tile.text()


def current(device: torch.device) -> AbstractContextManager[Any]:
    """The device made current, where it is a card."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


_KEPT: dict[tuple[int, str], TorchWeight] = {}


def _packed(w: QuantTensor, device: torch.device) -> TorchWeight:
    key = (id(w), str(device))
    found = _KEPT.get(key)
    if found is None:
        formats.by_name(w.format.name)
        found = _KEPT[key] = TorchWeight.pack(w, device)
        weakref.finalize(w, _KEPT.pop, key, None)
    return found
