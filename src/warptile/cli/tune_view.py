"""The end of a tune as a person reads it, in 100 columns, and in 80 with the tiles listed below the table."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from warptile.cli import show
from warptile.tuning.result import ModelSum, TuneResult, TuneRow

WIDE = 100
PLAIN_BOX = box.SIMPLE_HEAD


def render(result: TuneResult, width: int) -> Group:
    """Heading, table, sums, notes, where it is kept, what to run next."""
    parts: list[RenderableType] = [_heading(result), _wide(result) if width >= WIDE else _narrow(result)]
    parts += [_sum(each) for each in result.sums]
    parts += [Text(""), *_notes(result), _kept(result)]
    return Group(*parts)


def _heading(result: TuneResult) -> Text:
    line = show.text(result.name, "bold")
    line.append(f"  on {result.identity.device}, {result.identity.driver}", style="default")
    how = f"{result.tried} tiles proved, {result.rejected} rejected, in {show.clock(result.seconds)}"
    if result.rechecked:
        how = f"re-checked what the table holds: every winner proved again and raced once more, {how}"
    elif result.recalled:
        how += f"; {result.recalled} results taken from earlier runs"
    line.append(f"\n{how}", style="dim")
    return line


def _columns(table: Table, tile: str) -> None:
    table.add_column("matmul", no_wrap=True)
    table.add_column("count", justify="right")
    table.add_column("M", justify="right")
    table.add_column(tile, overflow="fold", ratio=1 if tile == "stock, chosen tile" else None)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("ratio", no_wrap=True)
    table.add_column("share", justify="right")


def _wide(result: TuneResult) -> Table:
    table = Table(box=PLAIN_BOX, padding=(0, 1), pad_edge=False, expand=False)
    _columns(table, "stock, chosen tile")
    for row in result.rows:
        _add(table, row, _stock_name(row), show.tile(row.tile))
    return table


def _narrow(result: TuneResult) -> Group:
    table = Table(box=PLAIN_BOX, padding=(0, 1), pad_edge=False)
    _columns(table, "tile")
    letters: dict[str, str] = {}

    def letter(tile: str) -> str:
        return letters.setdefault(tile, _letter(len(letters)))

    for row in result.rows:
        _add(table, row, "stock " + letter(row.stock) if row.stock else "no stock", letter(row.tile))
    legend = Table.grid(padding=(0, 1))
    for tile, name in letters.items():
        legend.add_row(Text(name, style="bold"), Text(show.tile(tile)))
    return Group(table, legend)


def _letter(index: int) -> str:
    return chr(ord("A") + index % 26) + (str(index // 26) if index >= 26 else "")


def _stock_name(row: TuneRow) -> str:
    return f"stock {show.tile(row.stock)}" if row.stock else f"no stock: {row.stock_note}"


def _add(table: Table, row: TuneRow, stock: str, chosen: str) -> None:
    """Two lines: the stock tile and its time, then the chosen one with the paired ratio between them."""
    problem, stays = row.problem, row.tile == row.stock
    table.add_row(
        show.text(show.matmul(problem)),
        str(problem.count),
        str(problem.m),
        Text(stock, style="dim"),
        Text(show.duration(row.stock_seconds), style="dim"),
        Text("stock stays" if stays else "", style="dim"),
        Text(f"{row.share:.0%}"),
    )
    if not stays:
        table.add_row(
            Text(_word(row), style="dim"),
            "",
            "",
            Text(chosen, style="bold"),
            Text(show.duration(row.seconds), style="bold"),
            Text(show.ratio(row.ratio, row.low, row.high) if row.stock else "", style="green"),
            "",
        )


def _word(row: TuneRow) -> str:
    return {"new": "", "rechecked": "  re-checked", "resumed": "  resumed"}[row.reuse]


def _sum(each: ModelSum) -> Text:
    line = Text(f"all matmuls at M = {each.m}: ")
    if each.stock_tokens_per_s is not None:
        line.append(f"{show.significant(each.stock_tokens_per_s)} tokens/s with stock tiles, ")
    line.append(f"{show.significant(each.tokens_per_s)} tokens/s tuned", style="bold")
    if each.stock_tokens_per_s is not None:
        line.append(f" ({each.tokens_per_s / each.stock_tokens_per_s:.2f}x)")
    if each.missing:
        line.append(f"; {each.missing} matmuls left out", style="yellow")
    return line


def _notes(result: TuneResult) -> list[Text]:
    lines = [
        show.text(f"{name}: {count} tensors, {share:.1%} of the file, have no kernel", "yellow")
        for name, count, share in result.unsupported
    ]
    lines += [Text(f"{problem.text()}: {reason}", style="yellow") for problem, reason in result.unserved]
    lines += [Text(note, style="yellow") for note in result.notes]
    floors = [row.floor for row in result.rows if row.race is not None]
    if floors:
        lines.append(Text(f"A/A floor of these races: {1 + min(floors):.3f} to {1 + max(floors):.3f}", style="dim"))
    return lines


def _kept(result: TuneResult) -> Text:
    lines = Text(overflow="fold")
    lines.append(f"table    {result.table}\n")
    lines.append(f"journal  {result.journal}\n")
    lines.append("next     " + "\n         ".join(result.hints))
    return lines
