"""`warptile confirm`: is the tuned model still the file's model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from warptile import __version__
from warptile.cli import options, show
from warptile.contracts import Identity, MissingExtra
from warptile.gguf import open_gguf
from warptile.journal import Asked, Journal, entries
from warptile.runtimes.registry import find_device

if TYPE_CHECKING:
    from warptile.confirm.confirming import Confirmation
    from warptile.places import Places

_SHOWN_PARTINGS = 5


def confirm(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(metavar="MODEL", help="A .gguf file.")],
    device: Annotated[
        str | None, typer.Option("--device", help="cuda:N or vulkan:N; default: the first there is.")
    ] = None,
    text: Annotated[
        Path | None, typer.Option("--text", help="UTF-8 text to predict; default: one that comes with warptile.")
    ] = None,
    window: Annotated[int, typer.Option("--window", min=2, help="Tokens of a window.")] = 512,
    windows: Annotated[int, typer.Option("--windows", min=1, help="How many windows of the text.")] = 2,
    tokens: Annotated[int, typer.Option("--tokens", min=1, help="Greedy tokens compared one by one.")] = 300,
    reference: Annotated[
        str | None,
        typer.Option("--reference", help="Where the decoded float32 model runs: cpu or cuda:N."),
    ] = None,
    because: options.Because = "",
    json: options.Json = False,
    state: options.State = None,
    cache: options.Cache = None,
) -> None:
    """Compare the packed model with the file decoded to float32: perplexity, divergence, greedy tokens, rates."""
    asked = options.asked(context, "confirm", because)
    found = run_confirm(path, device, options.places(state, cache), text, (window, windows, tokens), reference, asked)
    if json:
        show.print_json(found)
    else:
        print_confirmation(found)
    if not found.right:
        raise typer.Exit(1)


def refuse_unloadable(path: Path) -> None:
    """Before anything is tuned: raises MissingExtra without transformers, and UnusableInput where no model or tokenizer
    can be built from a file."""
    from warptile.model.load import require_model

    require_model()
    from warptile.model.tensors import ModelTensors
    from warptile.model.tokenizer import tokenizer_of

    tokenizer_of(ModelTensors.of(open_gguf(path)).file)


def run_confirm(
    path: Path,
    device: str | None,
    places: Places,
    text: Path | None = None,
    amount: tuple[int, int, int] = (512, 2, 300),
    reference: str | None = None,
    asked: Asked | None = None,
) -> Confirmation:
    """`confirming.confirm` with progress on stderr; what it found goes into the journal, with who asked and why.

    Raises MissingExtra without transformers, and what it raises.
    """
    try:
        from warptile.confirm.confirming import Amount, confirm
    except ImportError:
        raise MissingExtra("confirm", "model") from None
    errors = show.err()
    found = confirm(
        path,
        device,
        text,
        Amount(*amount),
        reference,
        places,
        lambda line: errors.print(Text(line), soft_wrap=True),
    )
    journal = Journal(places.state / "journal")
    entry = find_device(found.device)
    identity = Identity(entry.name, entry.driver, "", entry.runtime)
    journal.append(entries.start(identity, asked or Asked("confirm"), __version__, source=str(path)))
    journal.append(entries.confirmation(identity, found.model, found, found.right, found.failed))
    journal.append(entries.run("end", identity))
    return found


def print_confirmation(found: Confirmation) -> None:
    """The verdict and what it rests on."""
    console = show.out()
    console.print(show.text(f"{found.model} on {found.device}, against the file decoded to float32", "bold"))
    if (a := found.agreement) is not None:
        console.print(
            show.text(f"{found.text}: {found.windows} windows of {found.window}, {a.tokens} tokens predicted", "dim")
        )
        console.print(
            Text(
                f"perplexity    {a.perplexity:.4f}, reference {a.perplexity_reference:.4f}; "
                f"{a.difference:+.2e} nats a token, standard error {a.standard_error:.1e}"
            )
        )
        console.print(
            Text(
                f"divergence    mean {a.kl_mean:.2e} nats, 99th percentile {a.kl_99:.2e}; "
                f"likeliest token agrees {a.top1:.2%}"
            )
        )
        console.print(
            Text(f"greedy        {found.greedy - len(found.partings)} of {found.greedy} tokens are the reference's")
        )
        for parting in found.partings[:_SHOWN_PARTINGS]:
            console.print(
                show.text(
                    f"  token {parting.position}: {parting.got!r} for {parting.wanted!r}, "
                    f"reference's logits {parting.gap:.3f} apart"
                )
            )
        if len(found.partings) > _SHOWN_PARTINGS:
            console.print(Text(f"  and {len(found.partings) - _SHOWN_PARTINGS} more"))
        for name, rates in (("tuned", found.rates), ("reference", found.reference_rates)):
            console.print(
                Text(
                    f"{name:<13} prefill {show.significant(rates.prefill)} tokens/s, "
                    f"decode {show.significant(rates.decode)} tokens/s"
                )
            )
    for reason in found.failed:
        console.print(show.wrapping(f"not confirmed: {reason}", "red"))
    if found.right:
        console.print(Text("confirmed", style="green"))
