"""Rates of a whole model: the rows that llama-bench prints, time to the first token, and the share of the matmuls."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warptile.contracts import UnusableInput
from warptile.places import Places

if TYPE_CHECKING:
    from warptile.model.runner import Runner

FIRST_TOKEN = 256
"""Random tokens start here: below lie the bytes and control tokens of most vocabularies."""


@dataclass(frozen=True)
class RateRow:
    """Tokens per second of one test. test: "pp512" (a prefill of 512 tokens) or "tg128" (128 tokens, one at a time).

    depth: tokens that were there before. samples: one a repetition. matmul_share: of the time, inside quantized
    matmuls; None where nothing is packed.
    """

    test: str
    depth: int
    samples: tuple[float, ...]
    matmul_share: float | None = None

    @property
    def mean(self) -> float:
        """Tokens per second."""
        return statistics.fmean(self.samples)

    @property
    def spread(self) -> float:
        """Standard deviation of one sample, 0 of a single one."""
        return statistics.stdev(self.samples) if len(self.samples) > 1 else 0.0

    @property
    def label(self) -> str:
        """As llama-bench writes it: `pp512`, `pp512 @ d16384`."""
        return f"{self.test} @ d{self.depth}" if self.depth else self.test


@dataclass(frozen=True)
class ModelReport:
    """What was measured. device: as it names itself; load_seconds: file to a model that can be asked.

    first_token_seconds: from a prompt of `prompt` tokens to the next one, the model loaded, kernels compiled.
    reference: the same rows of the decoded model in fp32 on the processor. left_out: rows and why they were not run.
    """

    model: str
    device: str
    dtype: str
    graphs: bool
    load_seconds: float
    prompt: int
    first_token_seconds: float
    rows: tuple[RateRow, ...]
    reference: tuple[RateRow, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Tests:
    """What to run: prefills of `prompts` tokens, `generated` tokens, each at `depths`, `repetitions` times."""

    prompts: tuple[int, ...] = (512,)
    generated: tuple[int, ...] = (128,)
    depths: tuple[int, ...] = (0,)
    repetitions: int = 5

    def cases(self) -> list[tuple[str, int, int]]:
        """(kind, tokens, depth) in llama-bench's order: depths outermost."""
        return [
            (kind, count, depth)
            for depth in self.depths
            for kind, counts in (("pp", self.prompts), ("tg", self.generated))
            for count in counts
            if count
        ]

    @property
    def longest(self) -> int:
        """Tokens the longest case needs room for."""
        return max((depth + count for _, count, depth in self.cases()), default=0)


def bench_model(
    path: str | Path,
    device: str | None = None,
    tests: Tests | None = None,
    processor: bool = False,
    places: Places | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> ModelReport:
    """Load a model and measure `tests`; processor: also the decoded fp32 model on the host's processor.

    Cases that the model's context cannot hold are left out, with the reason. Raises what `load` raises, and
    UnusableInput where no case is left.
    """
    from warptile.model.load import first_device, load

    wanted = tests or Tests()
    where = device or first_device()
    say("loading")
    start = time.perf_counter()
    model, _ = load(path, where, places=places)
    loaded = time.perf_counter() - start
    runner, cases, left_out = _fitting(model, wanted)
    prompt = next((count for count in wanted.prompts if 0 < count <= runner.length), 1)
    first = _first_token(runner, prompt)
    rows = tuple(_measure(runner, case, wanted.repetitions, say) for case in cases)
    reference: tuple[RateRow, ...] = ()
    if processor:
        say("loading the decoded model on the processor")
        dense, _ = load(path, "cpu", dense=True, places=places)
        plain, cases, _ = _fitting(dense, wanted)
        reference = tuple(_measure(plain, case, wanted.repetitions, say) for case in cases)
    return ModelReport(
        model=Path(path).name,
        device=describe(model, where),
        dtype=str(model.dtype).removeprefix("torch."),
        graphs=runner.graphs,
        load_seconds=loaded,
        prompt=prompt,
        first_token_seconds=first,
        rows=rows,
        reference=reference,
        left_out=left_out,
    )


def describe(model: Any, device: str) -> str:
    """The device as it names itself."""
    import torch

    backend = backend_of(model)
    session = getattr(backend, "session", None)
    if session is not None:
        return str(session.runtime.identity().device)
    if model.device.type == "cuda":
        return str(torch.cuda.get_device_name(model.device))
    return device


def backend_of(model: Any) -> Any:
    """Where a model's packed weights live; None of a decoded model."""
    return getattr(getattr(getattr(model, "hf_quantizer", None), "plan", None), "backend", None)


def _fitting(model: Any, tests: Tests) -> tuple[Runner, list[tuple[str, int, int]], tuple[tuple[str, str], ...]]:
    from warptile.model.runner import Runner

    most = int(model.config.max_position_embeddings)
    cases = [case for case in tests.cases() if case[1] + case[2] <= most]
    left_out = tuple(
        (RateRow(f"{kind}{count}", depth, ()).label, f"the model's context holds {most} tokens")
        for kind, count, depth in tests.cases()
        if count + depth > most
    )
    if not cases:
        raise UnusableInput(f"nothing to measure: the model's context holds {most} tokens")
    return Runner(model, max(count + depth for _, count, depth in cases)), cases, left_out


def _first_token(runner: Runner, prompt: int) -> float:
    """Seconds from the prompt to the next token, the second time: the first compiles."""
    for _ in range(2):
        runner.reset()
        start = time.perf_counter()
        int(runner.prefill(random_tokens(runner.model, prompt)).argmax())
        spent = time.perf_counter() - start
    return spent


def _measure(runner: Runner, case: tuple[str, int, int], repetitions: int, say: Callable[[str], None]) -> RateRow:
    kind, count, depth = case
    label = RateRow(f"{kind}{count}", depth, ()).label
    backend = backend_of(runner.model)
    clock = getattr(backend, "clock", None)
    runner.reset()
    if depth:
        say(f"{label}: filling {depth} tokens")
        runner.prefill(random_tokens(runner.model, depth))
    runner.mark()
    samples, shares = [], []
    for repetition in range(repetitions + 1):
        say(f"{label}: {'warming up' if repetition == 0 else f'{repetition} of {repetitions}'}")
        runner.restore()
        if clock is not None:
            clock.reset()
        spent = _once(runner, kind, count if repetition or kind == "pp" else min(count, 8))
        if repetition:
            samples.append(count / spent)
            if clock is not None:
                shares.append(clock.seconds / spent)
    share = statistics.fmean(shares) if shares else _card_share(runner, kind, count)
    return RateRow(f"{kind}{count}", depth, tuple(samples), share)


def _once(runner: Runner, kind: str, count: int) -> float:
    tokens = random_tokens(runner.model, count)
    _wait(runner)
    start = time.perf_counter()
    if kind == "pp":
        runner.prefill(tokens)
    else:
        runner.decode(int(tokens[0]), count)
    _wait(runner)
    return time.perf_counter() - start


def _card_share(runner: Runner, kind: str, count: int) -> float | None:
    """Share of a card's busy time inside quantized matmuls, over one more run under torch's profiler."""
    if backend_of(runner.model) is None:
        return None
    from warptile.trace.torch_trace import matmul_share

    runner.restore()
    runner.replay = False
    try:
        return matmul_share(lambda: _once(runner, kind, min(count, 8) if kind == "tg" else count))
    finally:
        runner.replay = True


def random_tokens(model: Any, count: int) -> Any:
    """The same `count` random tokens i64[count] every time."""
    import torch

    vocabulary = int(model.config.vocab_size)
    low = FIRST_TOKEN if vocabulary > 2 * FIRST_TOKEN else 0
    generator = torch.Generator().manual_seed(count)
    return torch.randint(low, vocabulary, (count,), generator=generator)


def _wait(runner: Runner) -> None:
    import torch

    if runner.device.type == "cuda":
        torch.cuda.synchronize(runner.device)
