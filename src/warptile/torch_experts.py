"""Grouped matmul on torch tensors by expert ids, experts kept packed: a custom op as `torch_ops` has for a dense one.

Needs the extra `torch`. Importing this module registers the op `torch.ops.warptile.matmul_id`.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

import torch

from warptile import formats
from warptile.contracts import Problem, UnusableInput
from warptile.layouts.experts import expert_stride
from warptile.layouts.triton import NAME as QUADS
from warptile.layouts.triton.repack import repack
from warptile.runtimes.triton.engine import DTYPES, engine_of
from warptile.runtimes.triton.memory import to_tensor
from warptile.torch_ops import ALIGN_BYTES, best_of, current, refuse_other_device, serve_from_tables
from warptile.weights import QuantTensor


@dataclass(frozen=True)
class TorchExperts:
    """Experts w[experts, n, k] packed on a torch device. words: i32 quad words, expert by expert."""

    words: torch.Tensor = field(repr=False)
    format: str
    experts: int
    n: int
    k: int

    @classmethod
    def pack(cls, w: QuantTensor, experts: int, device: torch.device | str) -> TorchExperts:
        """Copy a 3-D tensor's file blocks to `device`, an expert at a time, and pack them there.

        w: its rows are those of all experts, (experts * n, k), as `QuantTensor.from_gguf` gives a 3-D tensor.
        Raises UnusableInput where the rows are not those of so many experts, or do not fit a buffer.
        """
        at = torch.device(device)
        rows, k = w.shape
        if experts < 1 or rows % experts:
            raise UnusableInput(f"weight [{rows}, {k}] does not hold {experts} experts of equal size")
        n = rows // experts
        limits = engine_of(at).limits
        stride = expert_stride(w.format, n, k, QUADS)
        if 4 * stride * experts > limits.max_buffer_bytes:
            raise UnusableInput(
                f"experts {w.format.name} [{experts}, {n}, {k}] take {4 * stride * experts} bytes;"
                f" {limits.max_buffer_bytes} fit"
            )
        with current(at):
            words = torch.zeros(experts * stride, dtype=torch.int32, device=at)
            for e in range(experts):
                packed = repack(w.format, to_tensor(w.blocks[e * n : (e + 1) * n]).to(at), n, k)
                words[e * stride :][: packed.numel()] = packed
        return cls(words, w.format.name, experts, n, k)


def matmul_id(
    x: torch.Tensor,
    experts: TorchExperts,
    ids: torch.Tensor,
    weights: torch.Tensor | None = None,
    *,
    kernel: str | None = None,
    tile: str | None = None,
    batch_invariant: bool = False,
    routing: str = "",
    check: bool = False,
) -> torch.Tensor:
    """y[t, j, n] = sum_k x[t, k] * w[ids[t, j], n, k]; with `weights` y[t, n], that times weights[t, j] summed over j.

    x: [T, K], or [T, top_k, K] with a row for each expert taken; fp16, bf16 or fp32. ids: whole numbers [T, top_k];
    weights: [T, top_k]. y has x's type, sums are fp32. Nothing waits for the device and the work can be captured into a
    graph; it is on the current stream of x's device.

    An id outside 0 .. experts - 1 takes no expert: its row of y is 0, it adds nothing to a sum, and no weight is read
    by it. Ids on the host are refused instead (UnusableInput), as are those on the device with `check`, which waits.

    kernel, tile: forced. routing: how tokens are taken to spread over experts, for which the table is asked ("":
    uniformly); it changes the time, never the result. batch_invariant: a token's result is the same to the bit whatever
    tokens it is computed with. Raises UnusableInput for other shapes or types, and as `torch_ops.matmul_torch`.
    """
    top_k = _check(x, experts.words, ids, weights, experts.k)
    if check or ids.device != x.device:
        refuse_bad_ids(ids, experts.experts)
        ids = ids.to(x.device, non_blocking=True)
    if batch_invariant and (tile is not None or kernel is not None):
        raise UnusableInput("batch_invariant chooses its own tile: leave kernel and tile out")
    if tile is not None and ":" not in tile:
        if kernel is None:
            raise UnusableInput(f"tile {tile!r} names no kernel: write KERNEL:field=value,... or give the kernel")
        tile = f"{kernel}:{tile}"
    elif tile is None and kernel is not None:
        problem = _problem(
            x, experts.format, experts.experts, experts.n, experts.k, top_k, weights is not None, routing
        )
        tile = best_of(engine_of(x.device), kernel, problem)
    y: torch.Tensor = torch.ops.warptile.matmul_id(
        x, experts.words, experts.format, experts.experts, experts.n, experts.k, ids, weights, tile or "",
        batch_invariant, routing,
    )  # fmt: skip
    return y


def matmul_id_served(
    x: torch.Tensor,
    w: QuantTensor,
    ids: torch.Tensor,
    weights: torch.Tensor | None,
    experts: int,
    device: str | None = None,
    kernel: str | None = None,
    tile: str | None = None,
    routing: str = "",
) -> torch.Tensor:
    """`matmul_id` on x's own device, routed by its tables; w is packed there at first use and kept while it lives.

    Raises UnusableInput as `matmul_id`, and where `device` names another device than x's.
    """
    refuse_other_device(x, device)
    serve_from_tables(x.device)
    key = (id(w), experts, str(x.device))
    packed = _KEPT.get(key)
    if packed is None:
        packed = _KEPT[key] = TorchExperts.pack(w, experts, x.device)
        weakref.finalize(w, _KEPT.pop, key, None)
    return matmul_id(x, packed, ids, weights, kernel=kernel, tile=tile, routing=routing)


_KEPT: dict[tuple[int, int, str], TorchExperts] = {}


def refuse_bad_ids(ids: torch.Tensor, experts: int) -> None:
    """Wait for ids[T, top_k] and raise UnusableInput with the first outside 0 .. experts - 1."""
    bad = (ids < 0) | (ids >= experts)
    if bool(bad.any()):
        token, slot = (int(i) for i in bad.nonzero()[0])
        raise UnusableInput(
            f"matmul_id: ids[{token}, {slot}] is {int(ids[token, slot])}, there are experts 0 to {experts - 1};"
            f" {int(bad.sum())} of {ids.numel()} ids are outside"
        )


@torch.library.custom_op("warptile::matmul_id", mutates_args=())
def _matmul_id(
    x: torch.Tensor,
    words: torch.Tensor,
    format: str,
    experts: int,
    n: int,
    k: int,
    ids: torch.Tensor,
    weights: torch.Tensor | None,
    tile: str,
    batch_invariant: bool,
    routing: str,
) -> torch.Tensor:
    """The op behind `matmul_id`. tile: "" where the table decides."""
    top_k = _check(x, words, ids, weights, k)
    y = x.new_empty(_y_shape(x, ids, weights, n))
    if y.numel() == 0:
        return y
    if top_k == 0:
        return y.zero_()
    engine = engine_of(x.device)
    rows = _aligned(x.reshape(-1, k))
    # Clamped first: a wider type must not wrap round to an expert.
    taken = _aligned(ids if ids.dtype == torch.int32 else ids.clamp(-1, experts).to(torch.int32))
    scales = None if weights is None else _aligned(weights.to(torch.float32))
    problem = _problem(x, format, experts, n, k, top_k, weights is not None, routing)
    with current(x.device):
        text = engine.invariant_id_tile(problem) if batch_invariant else tile or engine.tile(problem)
        engine.run(
            engine.prepared(problem, text), rows, words, y.view(-1, n), taken, taken if scales is None else scales
        )
    return y


@_matmul_id.register_fake
def _matmul_id_shape(
    x: torch.Tensor,
    words: torch.Tensor,
    format: str,
    experts: int,
    n: int,
    k: int,
    ids: torch.Tensor,
    weights: torch.Tensor | None,
    tile: str,
    batch_invariant: bool,
    routing: str,
) -> torch.Tensor:
    return x.new_empty(_y_shape(x, ids, weights, n))


def _y_shape(x: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor | None, n: int) -> tuple[Any, ...]:
    return (x.shape[0], n) if weights is not None else (x.shape[0], ids.shape[1], n)


def _check(x: torch.Tensor, words: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor | None, k: int) -> int:
    """top_k. Raises UnusableInput."""
    if x.dtype not in DTYPES:
        raise UnusableInput(f"matmul_id takes fp16, bf16 or fp32 as x, not {x.dtype}")
    if ids.dim() != 2 or ids.dtype not in (torch.int32, torch.int64):
        raise UnusableInput(f"matmul_id: ids are whole numbers [T, top_k], not {ids.dtype} {list(ids.shape)}")
    tokens, top_k = ids.shape
    if list(x.shape) not in ([tokens, k], [tokens, top_k, k]):
        raise UnusableInput(
            f"matmul_id: x is {list(x.shape)}, ids are {list(ids.shape)}, k is {k}: x is [T, K] or [T, top_k, K]"
        )
    if weights is not None and (weights.shape != ids.shape or not weights.dtype.is_floating_point):
        raise UnusableInput(f"matmul_id: weights are {weights.dtype} {list(weights.shape)}, ids {list(ids.shape)}")
    if x.device != words.device or (weights is not None and weights.device != x.device):
        raise UnusableInput(f"matmul_id: x is on {x.device}, the experts on {words.device}: all must be on one device")
    return int(top_k)


def _aligned(tensor: torch.Tensor) -> torch.Tensor:
    """Contiguous, from a multiple of 16 bytes on."""
    found = tensor.contiguous()
    return found if found.data_ptr() % ALIGN_BYTES == 0 else found.clone(memory_format=torch.contiguous_format)


def _problem(
    x: torch.Tensor, format: str, experts: int, n: int, k: int, top_k: int, summed: bool, routing: str
) -> Problem:
    formats.by_name(format)
    dtype = DTYPES[x.dtype]
    kind = routing or ("uniform" if experts == 1 else "")
    return Problem(
        format, n, k, x.shape[0], dtype, dtype, experts, top_k, routing=kind, x_slots=x.dim() == 3, summed=summed
    )
