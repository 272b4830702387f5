"""`warptile journal stats`: how well prices ranked what was measured."""

from __future__ import annotations

from dataclasses import asdict

from rich.text import Text

from warptile.cli import options, show
from warptile.cli.tune_view import grid
from warptile.journal import Journal, warning_lines
from warptile.search.accuracy import Accuracy, Ranked, accuracies


def stats(json: options.Json = False, state: options.State = None) -> None:
    """Show how well prices ranked tiles on each device, and how much of the space was never run."""
    journal = Journal(options.places(state, None).state / "journal")
    reading = journal.read()
    for warning in warning_lines(reading.warnings):
        show.err().print(show.line(warning, "yellow"), soft_wrap=True)
    found = accuracies(reading.entries)
    if json:
        rows = [{**asdict(each), "pruned": each.pruned} for each in found]
        show.print_json({"folder": str(journal.folder), "devices": rows})
        return
    if not found:
        show.out().print(Text(f"no screenings in {show.path(journal.folder)}"), soft_wrap=True)
    for each in found:
        _print(each)


def _print(each: Accuracy) -> None:
    console = show.out()
    console.print(show.text(f"{each.device}, {each.runtime}", "bold"))
    table = grid()
    table.add_column("price")
    table.add_column("rank correlation\nmiddle half", no_wrap=True)
    table.add_column("fastest in its top 5", no_wrap=True)
    table.add_column("searches", justify="right")
    for name, ranked in (("on paper", each.paper), ("corrected", each.corrected)):
        if ranked is not None:
            table.add_row(name, _correlation(ranked), f"{ranked.top} of {ranked.searches}", str(ranked.searches))
    console.print(table if table.row_count else Text("no search has five tiles yet", style="dim"))
    line = f"{each.tiles} timings"
    if each.pruned is not None:
        line += (
            f"; of {each.considered} tiles {each.refused} were refused on paper, {each.screened} screened,"
            f" {each.proved} proved: {each.pruned:.1%} never ran"
        )
    console.print(show.text(line, "not bold"), soft_wrap=True)


def _correlation(ranked: Ranked) -> str:
    middle, low, high = ranked.correlation
    return f"{middle:.2f}  [{low:.2f}, {high:.2f}]"
