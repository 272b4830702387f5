"""A tuned model against the decoded one in float32: is its text the file's text."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import torch
from torch import nn

from warptile.confirm.measures import Agreement, Compared, agreement, compare
from warptile.contracts import UnusableInput
from warptile.gguf import open_gguf
from warptile.gguf.escape import shown
from warptile.model.load import first_device, load_model, refuse
from warptile.model.metadata import Keys
from warptile.model.runner import Runner
from warptile.model.tensors import ModelTensors
from warptile.model.tokenizer import tokenizer_of
from warptile.places import Places

SHIPPED_TEXT = "text.txt"
PROMPT_TOKENS = 32

MOST_KL = 0.02
"""Mean divergence in nats. int8 activations, the coarsest arithmetic here, cost a small model 0.005; one matmul with
wrong weights costs more than 1."""

MOST_DIFFERENCE = 0.01
"""Mean loss of log likelihood in nats (1 % of perplexity), beyond three standard errors."""

LEAST_TOP1 = 0.9

MOST_GAP = 1.0
"""Where the arms choose another token, the reference must have found the two nearly as likely: logits this close."""


@dataclass(frozen=True)
class Parting:
    """One greedy position where the arms chose otherwise. gap: the reference's logit of its choice less that of the
    tuned arm's choice; wanted, got: the two tokens as text."""

    position: int
    wanted: str
    got: str
    gap: float


@dataclass(frozen=True)
class Rates:
    """Tokens per second of one arm, as run here: prefill of a window, and one token at a time; medians of all but the
    first of each, in which kernels are compiled."""

    prefill: float
    decode: float


@dataclass(frozen=True)
class Confirmation:
    """The verdict and what it rests on. failed: why not, one reason a line, empty where `right`.

    greedy: positions decoded, the tuned arm fed the reference's tokens; partings: those where its choice was another.
    window, windows: tokens of one, and how many. text: where the text came from.
    """

    model: str
    device: str
    right: bool
    failed: tuple[str, ...]
    text: str
    window: int
    windows: int
    agreement: Agreement | None
    greedy: int
    partings: tuple[Parting, ...]
    reference_rates: Rates
    rates: Rates


@dataclass(frozen=True)
class Amount:
    """How much is compared: `windows` windows of `window` tokens, `tokens` greedy tokens."""

    window: int = 512
    windows: int = 2
    tokens: int = 300


def confirm(
    path: str | Path,
    device: str | None = None,
    text: Path | None = None,
    amount: Amount | None = None,
    reference_device: str | None = None,
    places: Places | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Confirmation:
    """Load both arms and compare them on a text.

    reference_device: where the decoded fp32 model runs; None: the processor beside Vulkan, else the same card.
    Raises what `load` raises, and UnusableInput, before anything is loaded, for a text that cannot be read or is
    shorter than a window.
    """
    where = device or first_device()
    beside = reference_device or (where if where.partition(":")[0] in ("cuda", "hip") else "cpu")
    wanted = amount or Amount()
    words = read_text(text)
    tensors = ModelTensors.of(open_gguf(path))
    refuse(tensors, where)
    tokenizer = tokenizer_of(tensors.file)
    _windowed(tokenizer, words, wanted, Keys(tensors.file).whole("context_length"))
    say("loading the tuned arm")
    tuned = load_model(tensors, where, places=places)
    say(f"loading the reference: decoded to float32 on {beside}")
    reference = load_model(tensors, beside, torch.float32, dense=True, places=places)
    return confirm_models(reference, tuned, tokenizer, words, wanted, (Path(path).name, where), say)


def confirm_models(
    reference: Any,
    tuned: Any,
    tokenizer: Any,
    text: tuple[str, str],
    amount: Amount,
    names: tuple[str, str],
    say: Callable[[str], None] = lambda _: None,
) -> Confirmation:
    """Compare two loaded models. text: (its source, the words); names: (model, device), for the report.

    Raises UnusableInput where the text is shorter than a window, or the model's context is.
    """
    source = text[0]
    ids, window = _windowed(tokenizer, text, amount, int(tuned.config.max_position_embeddings))
    parts = [ids[i * window : (i + 1) * window] for i in range(min(amount.windows, len(ids) // window))]
    compared: list[Compared] = []
    failed: list[str] = []
    spent: tuple[list[float], list[float]] = ([], [])
    for i, part in enumerate(parts):
        say(f"window {i + 1} of {len(parts)}")
        logits = []
        for arm, model in enumerate((reference, tuned)):
            start = time.perf_counter()
            logits.append(_logits(model, part))
            spent[arm].append(time.perf_counter() - start)
        if found := _not_finite(reference, tuned, logits, part):
            failed.append(found)
            break
        compared.append(compare(logits[0][:-1], logits[1][:-1], part[1:]))
    prefill = [window * _rate(seconds) for seconds in spent]
    partings: tuple[Parting, ...] = ()
    decode, count = [0.0, 0.0], 0
    if not failed:
        room = int(tuned.config.max_position_embeddings) - PROMPT_TOKENS
        count = min(amount.tokens, room)
        say(f"{count} greedy tokens")
        partings, decode, found = _greedy(reference, tuned, tokenizer, ids[: min(PROMPT_TOKENS, window)], count)
        if found:
            failed.append(found)
    found_agreement = agreement(compared) if compared and not failed else None
    if found_agreement is not None:
        failed += _reasons(found_agreement, partings)
    return Confirmation(
        *names,
        right=not failed,
        failed=tuple(failed),
        text=source,
        window=window,
        windows=len(parts),
        agreement=found_agreement,
        greedy=count,
        partings=partings,
        reference_rates=Rates(prefill[0], decode[0]),
        rates=Rates(prefill[1], decode[1]),
    )


def _windowed(tokenizer: Any, text: tuple[str, str], amount: Amount, context: int) -> tuple[torch.Tensor, int]:
    """(tokens of the words i64[...], tokens of a window). Raises UnusableInput where the former are fewer."""
    source, words = text
    ids = torch.tensor(tokenizer(words).input_ids, dtype=torch.long)
    window = min(amount.window, context)
    if len(ids) < window:
        raise UnusableInput(f"{source}: {len(ids)} tokens, shorter than a window of {window}")
    return ids, window


def read_text(path: Path | None) -> tuple[str, str]:
    """(where it came from, the words): the shipped text, written for this project, or a file's.

    Raises UnusableInput where the file cannot be read as UTF-8.
    """
    if path is None:
        words = resources.files(__package__).joinpath(SHIPPED_TEXT).read_text(encoding="utf-8")
        return "the text that comes with warptile", words
    try:
        return shown(path), path.read_text(encoding="utf-8")
    except OSError as error:
        raise UnusableInput(f"{shown(path)}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise UnusableInput(f"{shown(path)}: byte {error.start}: not UTF-8 text") from None


def _logits(model: Any, ids: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        logits: torch.Tensor = model(input_ids=ids.to(model.device)[None], use_cache=False).logits[0].float()
    return logits


def _not_finite(reference: Any, tuned: Any, logits: list[torch.Tensor], ids: torch.Tensor) -> str:
    for name, model, found in zip(("reference", "tuned arm"), (reference, tuned), logits, strict=True):
        if not torch.isfinite(found).all():
            return f"the {name}'s logits are not finite; first in {first_not_finite(model, ids)}"
    return ""


def first_not_finite(model: nn.Module, ids: torch.Tensor) -> str:
    """Path of the first module whose result is not finite for a window; "no layer" where a second run has none."""
    found: list[str] = []

    def watch(path: str) -> Callable[..., None]:
        def hook(_module: nn.Module, _inputs: Any, result: Any) -> None:
            first = result[0] if isinstance(result, tuple) else result
            floats = isinstance(first, torch.Tensor) and first.is_floating_point()
            if not found and floats and not torch.isfinite(first).all():
                found.append(path)

        return hook

    leaves = [(path, m) for path, m in model.named_modules() if path and not any(True for _ in _inner(m))]
    handles = [module.register_forward_hook(watch(path)) for path, module in leaves]
    try:
        _logits(model, ids)
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else "no layer"


def _inner(module: nn.Module) -> Any:
    """Modules inside one that compute for the model; a group of packed weights belongs to its linear."""
    from warptile.model.group import Group

    return (child for child in module.children() if not isinstance(child, Group))


def _greedy(
    reference: Any, tuned: Any, tokenizer: Any, prompt: torch.Tensor, count: int
) -> tuple[tuple[Parting, ...], list[float], str]:
    """(partings, decode rate of each arm, where logits are not finite). The tuned arm is fed the reference's tokens, so
    every position counts, up to the first whose logits are not finite: other kernels serve one token than a window."""
    length = len(prompt) + count
    plain, own = Runner(reference, length), Runner(tuned, length)
    logits = [plain.prefill(prompt.to(plain.device)), own.prefill(prompt.to(own.device))]
    partings = list[Parting]()
    spent: tuple[list[float], list[float]] = ([], [])
    last = prompt
    for position in range(count):
        if found := _not_finite(reference, tuned, logits, last):
            return tuple(partings), [0.0, 0.0], f"greedy token {position}: {found}"
        wanted, got = int(logits[0].argmax()), int(logits[1].argmax())
        if wanted != got:
            gap = float(logits[0][wanted] - logits[0][got])
            partings.append(Parting(position, tokenizer.decode([wanted]), tokenizer.decode([got]), gap))
        if position + 1 == count:
            break
        last = torch.tensor([wanted])
        for arm, runner in enumerate((plain, own)):
            start = time.perf_counter()
            logits[arm] = runner.step(wanted)
            if runner.device.type == "cuda":
                torch.cuda.synchronize(runner.device)
            spent[arm].append(time.perf_counter() - start)
    return tuple(partings), [_rate(seconds) for seconds in spent], ""


def _rate(seconds: Sequence[float]) -> float:
    """Calls a second, by the median of all but the first, which kernels are compiled in, where there are others."""
    return 1.0 / statistics.median(seconds[1:] or seconds) if seconds else 0.0


def _reasons(found: Agreement, partings: tuple[Parting, ...]) -> list[str]:
    reasons = []
    if not found.kl_mean <= MOST_KL:
        reasons.append(f"mean divergence {found.kl_mean:.4g} nats > {MOST_KL}")
    most = MOST_DIFFERENCE + 3 * (found.standard_error if math.isfinite(found.standard_error) else 0.0)
    if not found.difference <= most:
        reasons.append(f"log likelihood lost {found.difference:.4g} nats a token > {most:.4g}")
    if not found.top1 >= LEAST_TOP1:
        reasons.append(f"the likeliest token agrees at {found.top1:.1%} of positions < {LEAST_TOP1:.0%}")
    if far := [p for p in partings if not p.gap <= MOST_GAP]:
        reasons.append(
            f"greedy token {far[0].position} is another where the reference is sure: logit gap {far[0].gap:.2f} > "
            f"{MOST_GAP}"
        )
    return reasons
