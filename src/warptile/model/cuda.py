"""Packed weights on torch tensors: Triton kernels on a card, or in Triton's interpreter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from threading import Thread

import torch

from warptile import formats, kernels
from warptile.contracts import Limits, Problem, UnusableInput, WarptileError, Workload
from warptile.kernels.triton.dequantize.kernel import DequantizeTile
from warptile.kernels.triton.program import Program
from warptile.layouts.triton import MOST_PLANES, arrangement
from warptile.layouts.triton.parameters import decoder_parameters
from warptile.layouts.triton.repack import repack
from warptile.model.group import Experts, Group
from warptile.model.modules import QuantLinear
from warptile.model.rows_device import chosen_rows
from warptile.places import Places
from warptile.routing import Notices
from warptile.runtimes.triton.engine import DTYPES, Engine, engine_of
from warptile.runtimes.triton.memory import to_tensor
from warptile.torch_experts import TorchExperts, matmul_id
from warptile.torch_ops import TableRouter, TorchWeight, add_router, current, matmul_torch, serve_from_tables
from warptile.weights import QuantTensor
from warptile.workloads.joined import joined, largest_parts

ROWS_A_PROGRAM = 16


class TorchBackend:
    """Triton kernels on torch tensors of a CUDA or ROCm card, or of Triton's interpreter.

    Members of a group that follow each other in the same format are one matrix there: one launch computes them.
    """

    def __init__(self, device: torch.device, batch_invariant: bool = False, places: Places | None = None) -> None:
        self.joined = _joined_router(serve_from_tables(device, places), device)
        self.device = device
        self.batch_invariant = batch_invariant
        self._ahead: Thread | None = None

    def expect(self, workload: Workload, dtype: torch.dtype, ms: Sequence[int]) -> None:
        """Begin to compile what serves a model's linears for these numbers of tokens, while they are loaded. What does
        not compile is left to its first use."""
        if self.device.type != "cuda" or self.batch_invariant:
            return
        for matrix, largest in largest_parts(workload).items():
            self.joined.know(*matrix, largest)
        asked = (p for m in ms for p in joined(workload).problems(m) if not p.grouped)
        problems = {replace(p, x_dtype=DTYPES[dtype], y_dtype=DTYPES[dtype], count=1): None for p in asked}

        def work() -> None:
            with suppress(WarptileError), torch.cuda.device(self.device):
                compile_problems(engine_of(self.device), problems)

        self._ahead = Thread(target=work, daemon=True)
        self._ahead.start()

    def wait(self) -> None:
        """Until what `expect` began has ended."""
        if self._ahead is not None:
            self._ahead.join()
            self._ahead = None

    def group(self, weights: Sequence[QuantTensor]) -> Group:
        return TorchGroup(weights, self)

    def experts(self, w: QuantTensor, count: int) -> Experts:
        return TorchExpertGroup(w, count, self)

    def rows_of(self, group: Group, w: QuantTensor) -> TorchRows:
        assert isinstance(group, TorchGroup)
        return TorchRows(group)

    def close(self) -> None:
        """Torch frees the tensors."""


class TorchExpertGroup(Experts):
    """Experts whose words are a buffer of the module; one launch computes every token's."""

    def __init__(self, w: QuantTensor, count: int, backend: TorchBackend) -> None:
        super().__init__(count, w.shape[0] // count, w.shape[1])
        packed = TorchExperts.pack(w, count, backend.device)
        self.register_buffer("words", packed.words, persistent=False)
        self.format, self.invariant = packed.format, backend.batch_invariant

    def forward(self, x: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor | None = None) -> torch.Tensor:
        """`torch_experts.matmul_id`."""
        packed = TorchExperts(self.words, self.format, self.experts, self.n, self.k)
        return matmul_id(x, packed, ids, weights, batch_invariant=self.invariant)


class TorchGroup(Group):
    """A group whose words are buffers of the module, so that they move with the model."""

    def __init__(self, weights: Sequence[QuantTensor], backend: TorchBackend) -> None:
        super().__init__([w.shape[0] for w in weights])
        self.invariant = backend.batch_invariant
        self.parts: list[tuple[str, str, int, int, list[int]]] = []
        for i, run in enumerate(_runs(weights)):
            packed = packed_joined(run, backend.device)
            if len(run) > 1:
                backend.joined.know(packed.format, packed.n, packed.k, max(w.shape[0] for w in run))
            name = f"words{i}"
            self.register_buffer(name, packed.words, persistent=False)
            self.parts.append((name, packed.format, packed.n, packed.k, [w.shape[0] for w in run]))

    def weights(self) -> list[TorchWeight]:
        """The packed matrices, in order."""
        return [TorchWeight(getattr(self, name), format, n, k) for name, format, n, k, _ in self.parts]

    def compute(self, x: torch.Tensor) -> Sequence[torch.Tensor]:
        found: list[torch.Tensor] = []
        for weight, (*_, sizes) in zip(self.weights(), self.parts, strict=True):
            y = matmul_torch(x, weight, batch_invariant=self.invariant)
            found += [y] if len(sizes) == 1 else y.split(sizes, dim=-1)
        return found


def compile_ahead(model: torch.nn.Module, dtype: torch.dtype, ms: Iterable[int]) -> None:
    """Compile side by side what the packed matmuls of a model on a card need for these numbers of tokens; the output
    matmul is asked for one.

    Nothing is done for models whose weights lie elsewhere. What does not compile is left to its first use.
    """
    plan = getattr(getattr(model, "hf_quantizer", None), "plan", None)
    if isinstance(backend := getattr(plan, "backend", None), TorchBackend):
        backend.wait()
    wanted = tuple(ms)
    problems: dict[Problem, None] = {}
    device = None
    for module in model.modules():
        if isinstance(module, QuantLinear) and isinstance(module.group, TorchGroup):
            device = module.group.words0.device
            tokens = (1,) if module is getattr(model, "lm_head", None) else wanted
            for _, format, n, k, _ in module.group.parts:
                problems |= {Problem(format, n, k, m, DTYPES[dtype], DTYPES[dtype]): None for m in tokens}
    if device is not None:
        compile_problems(engine_of(device), problems)


def compile_problems(engine: Engine, problems: Iterable[Problem]) -> None:
    """Compile side by side what serves some problems."""
    programs: dict[str, Program] = {}
    for problem in problems:
        kernel, tile = kernels.parse_tile(engine.tile(problem))
        source = kernel.source(tile, problem, engine.limits)
        programs.setdefault(source.text, Program.parse(source))
    engine.backend.ahead(list(programs.values()), None)


class JoinedRouter:
    """Serves joined matrices, which tables may not know: by the winner of their largest part, where that was measured.

    A table that knows the joined matrix goes first. Both kinds are followed by a notice once, as untuned.
    """

    def __init__(self, tables: TableRouter, limits: Limits) -> None:
        self._tables, self._limits = tables, limits
        self._largest: dict[tuple[str, int, int], int] = {}
        self._notices = Notices()

    def know(self, format: str, n: int, k: int, largest: int) -> None:
        """Take up a joined matrix w[n, k] whose largest part has so many rows."""
        self._largest[format, n, k] = largest

    def __call__(self, problem: Problem) -> str | None:
        """The tile's text; None for other matmuls, and where no part was measured either."""
        largest = self._largest.get((problem.format, problem.n, problem.k))
        if largest is None or self._tables.route(problem).status != "untuned":
            return None
        part = self._tables.route(replace(problem, n=largest))
        if part.status == "untuned" or part.kernel.broken_rules(part.tile, problem, self._limits):
            return None
        why = f"it is joined of matrices, the largest of which (n = {largest}) was measured"
        self._notices.say(problem, replace(part, status="untuned", why=why), stacklevel=2)
        return part.tile.text()


def _joined_router(tables: TableRouter, device: torch.device) -> JoinedRouter:
    engine = engine_of(device)
    found = next((router for router in engine.routers if isinstance(router, JoinedRouter)), None)
    if found is None:
        found = JoinedRouter(tables, engine.limits)
        add_router(device, found)
    return found


def packed_joined(parts: Sequence[QuantTensor], device: torch.device) -> TorchWeight:
    """The matrix of the rows of all `parts`, of one format and K, one after another; each is copied to `device` once.

    Raises UnusableInput where it is too large for a buffer there.
    """
    first = parts[0]
    n, k = sum(w.shape[0] for w in parts), first.shape[1]
    needed = 4 * arrangement(first.format.layout, k).offsets(n)[1]
    if needed > engine_of(device).limits.max_buffer_bytes:
        raise UnusableInput(
            f"weight {first.format.name} [{n}, {k}] takes {needed} bytes, more than a buffer there holds"
        )
    with current(device):
        source = torch.empty(n * first.format.row_bytes(k), dtype=torch.uint8, device=device)
        done = 0
        for w in parts:
            source[done : done + w.blocks.size] = to_tensor(w.blocks)
            done += w.blocks.size
        return TorchWeight(repack(first.format, source, n, k), first.format.name, n, k)


def _runs(weights: Sequence[QuantTensor]) -> list[list[QuantTensor]]:
    runs: list[list[QuantTensor]] = []
    for w in weights:
        if runs and runs[-1][-1].format == w.format:
            runs[-1].append(w)
        else:
            runs.append([w])
    return runs


class TorchRows:
    """Rows of a packed matrix on its device, decoded in one launch."""

    def __init__(self, group: TorchGroup) -> None:
        self._group = group

    def __call__(self, ids: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        name, format, n, k, _ = self._group.parts[0]
        rows: torch.Tensor = torch.ops.warptile.rows(getattr(self._group, name), ids, format, n, k, dtype)
        return rows


@torch.library.custom_op("warptile::rows", mutates_args=())
def _rows(words: torch.Tensor, ids: torch.Tensor, format: str, n: int, k: int, dtype: torch.dtype) -> torch.Tensor:
    """w[ids[...], :] in `dtype` for quad words of w[n, k], NaN for an id outside."""
    arranged = arrangement(formats.by_name(format).layout, k)
    starts, _ = arranged.offsets(n)
    planes = (*starts[:-1], *(0,) * (MOST_PLANES - len(starts) + 1))
    out = torch.empty((*ids.shape, k), dtype=dtype, device=words.device)
    flat = ids.reshape(-1).contiguous()
    with current(words.device):
        chosen_rows[(k // arranged.step, -(-flat.numel() // ROWS_A_PROGRAM))](
            words, flat, out, flat.numel(), n, k, *planes, L=decoder_parameters(arranged), TILE=ROWS_A_PROGRAM
        )
    return out


@_rows.register_fake
def _rows_shape(
    words: torch.Tensor, ids: torch.Tensor, format: str, n: int, k: int, dtype: torch.dtype
) -> torch.Tensor:
    return words.new_empty((*ids.shape, k), dtype=dtype)


def dequantized(weight: TorchWeight, dtype: torch.dtype) -> torch.Tensor:
    """w[n, k] in `dtype`, by the kernel `triton.dequantize`; its decoder is "plain" for fp32, else "half"."""
    engine = engine_of(weight.words.device)
    x_dtype = DTYPES[dtype]
    problem = Problem(weight.format, weight.n, weight.k, 1, x_dtype, x_dtype)
    tile = DequantizeTile(tile_n=16, decode="plain" if x_dtype == "fp32" else "half", steps=1)
    out = torch.empty((weight.n, weight.k), dtype=dtype, device=weight.words.device)
    engine.decode(engine.prepared(problem, tile.text()), weight.words, out)
    return out
