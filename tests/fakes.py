"""A runtime that runs Python functions on byte arrays, and a kernel whose faults can be planted.

Buffers are whole allocations with guard bands, so a fault can write and read where a real one would.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from warptile import formats
from warptile.contracts import (
    Arithmetic,
    BrokenRule,
    Ceilings,
    DeviceWeights,
    Identity,
    Launch,
    Limits,
    Price,
    Problem,
    Scratch,
    Source,
    Tile,
    WeightSlice,
)
from warptile.contracts.runtime import sample_dtype
from warptile.layouts import PackedSlice, PackedWeights, unpack

BAND = 256
NAN_WORD = 0x7FC27FC3


@dataclass(frozen=True, eq=False)
class FakeBuffer:
    memory: np.ndarray
    offset: int
    nbytes: int
    guarded: bool = False
    freed: list[bool] = None  # type: ignore[assignment]


@dataclass(frozen=True)
class FakeBinary:
    id: int
    key: str
    source: Source
    compile_seconds: float = 0.0
    helpers: tuple[FakeBinary, ...] = ()


@dataclass
class Call:
    """What a program sees: the buffers' allocations as words, and where each payload starts and ends in them."""

    launch: Launch
    executed: int
    runs: int
    buffers: tuple[FakeBuffer, ...]

    def payload(self, index: int, dtype: str) -> np.ndarray:
        buffer = self.buffers[index]
        return buffer.memory[buffer.offset : buffer.offset + buffer.nbytes].view(sample_dtype(dtype))

    def words(self, index: int) -> tuple[np.ndarray, int, int]:
        buffer = self.buffers[index]
        return buffer.memory.view("<u4"), buffer.offset // 4, (buffer.offset + buffer.nbytes) // 4


class FakeRuntime:
    """programs: what each kernel's source text runs. seconds: what a launch takes, for `time`; it moves the clock."""

    name = "fake"

    def __init__(
        self,
        programs: dict[str, Callable[[Call], None]],
        seconds: Callable[[Launch, float], float] = lambda launch, now: 1e-3,
        cache_bytes: int = 0,
    ) -> None:
        self.programs = programs
        self.seconds = seconds
        self.cache_bytes = cache_bytes
        self.scratch: dict[str, object] = {}
        self.now = 0.0
        self.live = 0
        self.runs = 0
        self.timed: list[Launch] = []
        self._ids: list[int] = []
        self._scratches: dict[Scratch, FakeBuffer] = {}

    def clock(self) -> float:
        return self.now

    def limits(self) -> Limits:
        return Limits(
            "fake", "fake", "fake", "software", 8, (8,), 32768, 32768, 1024, (65535,) * 3, 1 << 27,
            cache_bytes=self.cache_bytes, live=True,
        )  # fmt: skip

    def identity(self) -> Identity:
        return Identity("fake", "1", "none", "fake")

    def ceilings(self) -> Ceilings:
        return Ceilings(1e9, 1e9, 1e-6)

    def _new(self, nbytes: int, before: int, after: int, guarded: bool) -> FakeBuffer:
        padded = -(-nbytes // 4) * 4 - nbytes
        memory = np.full((before + nbytes + after + padded) // 4, NAN_WORD, "<u4").view(np.uint8)
        self.live += 1
        return FakeBuffer(memory, before, nbytes, guarded, [False])

    def upload(self, data: np.ndarray) -> FakeBuffer:
        buffer = self._new(data.nbytes, 0, 0, False)
        self.write(buffer, data)
        return buffer

    def write(self, buffer: FakeBuffer, data: np.ndarray) -> None:
        raw = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        assert raw.size <= buffer.nbytes
        buffer.memory[buffer.offset : buffer.offset + raw.size] = raw

    def download(self, buffer: FakeBuffer, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return buffer.memory[buffer.offset : buffer.offset + size].copy().view(dtype).reshape(shape)

    def guarded_buffer(self, nbytes: int, at_end: bool = False) -> FakeBuffer:
        return self._new(nbytes, BAND, 0 if at_end else BAND, True)

    def guards_intact(self, buffer: FakeBuffer) -> bool:
        assert buffer.guarded
        words = buffer.memory.view("<u4")
        first, last = buffer.offset // 4, -(-(buffer.offset + buffer.nbytes) // 4)
        return bool((words[:first] == NAN_WORD).all() and (words[last:] == NAN_WORD).all())

    def scratch_buffer(self, scratch: Scratch) -> FakeBuffer:
        if scratch not in self._scratches:
            self._scratches[scratch] = self._new(scratch.nbytes, BAND, BAND, True)
            self.live -= 1  # not the caller's to free
        return self._scratches[scratch]

    def free(self, buffers: Sequence[FakeBuffer]) -> None:
        for buffer in buffers:
            assert not buffer.freed[0]
            buffer.freed[0] = True
            self.live -= 1

    def compile(self, source: Source, instrument: str = "none") -> FakeBinary:
        key = repr((source.text, source.constants, source.helpers))
        helpers = tuple(self.compile(helper, instrument) for helper in source.helpers)
        return FakeBinary(zlib.crc32(key.encode()) or 1, key, source, helpers=helpers)

    def resources(self, binary: FakeBinary) -> None:
        return None

    def execute(self, launches: Sequence[Launch]) -> None:
        self._ids = []
        for launch in launches:
            buffers = tuple(self.scratch_buffer(b) if isinstance(b, Scratch) else b for b in launch.buffers)
            assert not any(b.freed[0] for b in buffers)
            call = Call(launch, launch.binary.id if min(launch.grid) else 0, self.runs, buffers)
            if min(launch.grid):
                self.programs[launch.binary.source.text](call)
            self._ids.append(call.executed)
            self.runs += 1

    def time(self, launches: Sequence[Launch]) -> list[float]:
        self.timed += launches
        self._ids = [self.programs.get("executed", lambda b: b.id)(launch.binary) for launch in launches]
        taken = []
        for launch in launches:
            taken.append(self.seconds(launch, self.now))
            self.now += taken[-1]
        return taken

    def executed_ids(self) -> list[int]:
        return self._ids

    def close(self) -> None:
        return None


@dataclass(frozen=True)
class FakeTile(Tile):
    kernel: ClassVar[str] = "fake.matmul"
    tile_m: int = 8
    tile_n: int = 8
    tile_k: int = 32
    fault: str = "none"
    number: int = 0


class FakeKernel:
    """y = x w^T in numpy's fp32; `tile.fault` names what it does wrong."""

    name = "fake.matmul"
    runtime = "fake"
    tile_type = FakeTile

    def __init__(self, weights: str = "fp32", rule: Callable[[FakeTile, Problem], bool] = lambda t, p: True) -> None:
        self.weights = weights
        self.rule = rule

    def programs(self) -> dict[str, Callable[[Call], None]]:
        return {"matmul": self.run}

    def space(self, problem: Problem, limits: Limits) -> Iterator[FakeTile]:
        yield FakeTile()

    def stock(self, problem: Problem, limits: Limits) -> FakeTile:
        return FakeTile()

    def broken_rules(self, tile: FakeTile, problem: Problem, limits: Limits) -> list[BrokenRule]:
        return [] if self.rule(tile, problem) else [BrokenRule("the fake's rule", f"n = {problem.n}")]

    def price(self, tile: FakeTile, problem: Problem, limits: Limits) -> Price:
        raise NotImplementedError

    def source(self, tile: FakeTile, problem: Problem, limits: Limits) -> Source:
        constants = (tile.tile_m, tile.tile_n, tile.tile_k, zlib.crc32(tile.fault.encode()), tile.number)
        if tile.fault == "shape_in_source":
            constants += (problem.n,)
        fmt = formats.by_name(problem.format).gguf_id
        return Source("python", "matmul", tuple(enumerate((*constants, fmt))), 3, 5, 1)

    def launch(
        self, binary: FakeBinary, tile: FakeTile, problem: Problem, x: FakeBuffer, w: DeviceWeights, y: FakeBuffer
    ) -> tuple[Launch, ...]:
        def one(piece: WeightSlice) -> Launch:
            grid = (0, 1, 1) if tile.fault == "empty_grid" else (1, 1, 1)
            named = FakeBinary(binary.id + 1, "", binary.source) if tile.fault == "other_binary" else binary
            shape = (problem.m, piece.rows, problem.k, piece.row0, problem.n)
            scalars = (*shape, tile, problem.format, piece.planes, problem.x_dtype, problem.y_dtype)
            return Launch(named, (x, piece.buffer, y), scalars, grid)  # type: ignore[arg-type]

        return tuple(one(piece) for piece in w.slices)

    def boundaries(self, tile: FakeTile) -> tuple[int, int, int]:
        return tile.tile_m, tile.tile_n, tile.tile_k

    def arithmetic(self, tile: FakeTile, problem: Problem) -> Arithmetic:
        return Arithmetic(self.weights, self.weights, "fp32", problem.k)

    def run(self, call: Call) -> None:
        m, rows, k, row0, stride, tile, name, planes, x_type, y_type = call.launch.scalars
        fault = tile.fault
        xs, x0, x1 = call.words(0)
        ws, w0, w1 = call.words(1)
        ys, _, y1 = call.words(2)
        x = call.payload(0, x_type).reshape(m, k).astype(np.float32)
        w = _decoded(name, ws[w0:w1].copy(), rows, k, planes, fault)
        if self.weights == "fp16":
            x, w = x.astype(np.float16).astype(np.float32), w.astype(np.float16).astype(np.float32)
        if fault == "k_tail":
            whole = k // tile.tile_k * tile.tile_k
            x[:, whole:] = 0
        if fault == "flushes_subnormal_activations":
            x[np.abs(x) < 2.0**-14] = 0
        out = x @ w.T
        if fault == "saturates":
            out = np.clip(out, -65504, 65504)
        if fault == "nan_reaches_the_next_row":
            out[1:][np.isnan(out[:-1])] = np.nan
        if fault == "reads_past_k":
            past = xs[x1] if x1 < len(xs) else np.uint32(NAN_WORD)
            if k % tile.tile_k:
                out[-1] += np.array([past], "<u4").view(np.float32)[0] * np.float32(0)
        if fault == "wrong_cell":
            out[-1, -1] *= np.float32(1.05)
        if fault == "wrong_beyond_two_tiles" and rows > 2 * tile.tile_n:
            out[0, -1] *= np.float32(1.05)
        if fault == "wraps_after_128_rows":
            out[:, 128:] = out[:, : max(0, rows - 128)]
        if fault == "nondeterministic":
            out *= np.float32(1) + np.float32(1.2e-7) * (call.runs % 2)
        y = call.payload(2, y_type).reshape(m, stride)
        columns = slice(row0, row0 + rows)
        if fault == "floor_n":
            columns = slice(row0, row0 + rows // tile.tile_n * tile.tile_n)
        if fault == "forgets_row0":
            columns = slice(0, rows)
        lines = slice(0, m // tile.tile_m * tile.tile_m) if fault == "floor_m" else slice(0, m)
        if fault == "accumulates":
            y[lines, columns] += out
        else:
            y[lines, columns] = out[lines, : columns.stop - columns.start]
        if fault == "writes_past_y" and y1 < len(ys):
            ys[y1] = 0
        if fault == "writes_before_w":
            ws[w0 - 1] = 0
        if fault == "modifies_x":
            xs[x0] ^= 1
        if fault == "modifies_w":
            ws[w1 - 1] ^= 1 << 31
        if fault == "stale_id":
            call.executed ^= 0xFF


class TwoPassKernel(FakeKernel):
    """A helper copies x to scratch memory, the matmul reads it from there."""

    def programs(self) -> dict[str, Callable[[Call], None]]:
        return {"matmul": self.run, "copy": self.copy}

    def source(self, tile: FakeTile, problem: Problem, limits: Limits) -> Source:
        copy = Source("python", "copy", ((0, zlib.crc32(tile.fault.encode())),), 2, 1, 1)
        return dataclasses.replace(super().source(tile, problem, limits), helpers=(copy,))

    def launch(
        self, binary: FakeBinary, tile: FakeTile, problem: Problem, x: FakeBuffer, w: DeviceWeights, y: FakeBuffer
    ) -> tuple[Launch, ...]:
        scratch = Scratch("x", x.nbytes)
        (helper,) = binary.helpers
        if tile.fault == "strange_helper":
            helper = FakeBinary(helper.id + 1, "", helper.source)
        first = Launch(helper, (x, scratch), (tile,), (1, 1, 1))  # type: ignore[arg-type]
        if tile.fault == "helper_alone":
            return (first,)
        after = super().launch(binary, tile, problem, scratch, w, y)  # type: ignore[arg-type]
        return after if tile.fault == "no_helper" else (first, *after)

    def copy(self, call: Call) -> None:
        (tile,) = call.launch.scalars
        (xs, x0, x1), (ss, s0, s1) = call.words(0), call.words(1)
        ss[s0:s1] = xs[x0:x1]
        if tile.fault == "helper_forgets_the_last":  # type: ignore[attr-defined]
            ss[s1 - 1] = NAN_WORD
        if tile.fault == "helper_writes_past":  # type: ignore[attr-defined]
            ss[s1] = 0


def _decoded(name: str, words: np.ndarray, rows: int, k: int, planes: tuple[int, ...], fault: str) -> np.ndarray:
    fmt = formats.by_name(name)
    if fault == "flipped_code_bit":
        words[0] ^= 1
    if fault == "flipped_late_code_bit" and k >= 512:
        words[rows * (k // 64)] ^= 1
    blocks = unpack(PackedWeights(fmt, rows, k, (PackedSlice(0, rows, words, planes),)))
    fields = fmt.split(blocks.reshape(-1, fmt.block_bytes))
    if fault == "flushes_subnormal_scales":
        d = fields.scales["d"]
        fields.scales["d"][...] = np.where(d & 0x7C00, d, 0)  # type: ignore[index]
    if fault == "divides_by_the_scale":
        d = fields.scales["d"].view("<f2").astype(np.float32)
        return (fmt.layout.values(fields) / d * d).reshape(rows, k)
    if fault == "overflows_above_one":
        values = fmt.layout.values(fields)
        lost = (np.abs(values) >= 1) & (values * 4 != np.round(values * 4))
        return np.where(lost, np.float32(np.nan), values).reshape(rows, k)
    if fault == "neighbours_scale":
        fields.scales["d"][:] = np.roll(fields.scales["d"], 1)  # type: ignore[index]
    return fmt.layout.values(fields).reshape(rows, k)


__all__ = ["BAND", "Call", "FakeBinary", "FakeBuffer", "FakeKernel", "FakeRuntime", "FakeTile", "TwoPassKernel"]
