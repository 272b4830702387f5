"""`warptile table show|verify|forget`: what is served on a device."""

from __future__ import annotations

import contextlib
from typing import Annotated

import typer
from rich.text import Text

from warptile import formats
from warptile.cli import options, show
from warptile.cli.pipelines import limits_of_sizes
from warptile.cli.tune_view import grid
from warptile.contracts import CandidateRejected, Identity, UnusableInput
from warptile.journal import Journal, entries, to_json
from warptile.journal.record import Record
from warptile.kernels import for_runtime
from warptile.places import Places
from warptile.proof.version import PROOF_VERSION
from warptile.runtimes import open_device
from warptile.tables import Key, Point, Table, rebuild_from
from warptile.tables.points import CHECKOUT
from warptile.tuning.notes import Book
from warptile.tuning.worker_stand import WorkerStand

app = typer.Typer(help="What is served on a device: show, verify, forget.", no_args_is_help=False)
PROVE_DEADLINE_S = 120.0


@app.callback()
def _group() -> None:
    """What is served on a device."""


def identity_of(device: str, places: Places) -> Identity:
    """Identity of a device, which need not be free: a tune may be at work on it."""
    runtime = open_device(device, places)
    try:
        return runtime.identity()
    finally:
        runtime.close()


@app.command("show")
def show_table(
    device: options.Device = options.FIRST_DEVICE,
    json: options.Json = False,
    state: options.State = None,
    cache: options.Cache = None,
) -> None:
    """Show the winners measured on this device."""
    kept = options.places(state, cache).ready()
    table = Table.load(kept.state / "tables", identity_of(device, kept))
    if json:
        show.print_json({"path": str(table.path), **table.to_json()})
        return
    console = show.out()
    console.print(Text(show.path(table.path), style="dim"), soft_wrap=True)
    listed = grid()
    listed.add_column("matmul\nM", no_wrap=True)
    listed.add_column("tile\nstock tile it beat")
    listed.add_column("time", justify="right", no_wrap=True)
    listed.add_column("ratio\ninterval", no_wrap=True)
    listed.add_column("valid")
    for row in table.rows():
        for point in row.points:
            won = point.tile != point.stock
            listed.add_row(
                show.text(show.matmul(row.key.problem(point.m))),
                show.wrapping(show.tile(point.tile), "bold"),
                show.duration(point.seconds),
                f"{point.ratio:.2f}x" if won else "stock stays",
                show.wrapping(point.validity.stale(table.identity, PROOF_VERSION) or "yes"),
            )
            beaten = show.tile(point.stock) if won and point.stock else ""
            listed.add_row(
                Text(f"M = {point.m}", style="dim"),
                show.wrapping(beaten, "dim"),
                Text(show.duration(point.stock_seconds) if beaten else "", style="dim"),
                show.interval(point.low, point.high) if beaten else "",
                "",
            )
    console.print(listed if table.rows() else Text("nothing was tuned on this device yet: warptile tune MODEL.gguf"))
    for pipelines in table.pipelines():
        key = pipelines.key
        console.print()
        console.print(show.line(f"pipelines of {key.kernel} on {key.format}, {key.x_dtype}", "bold"))
        console.print(show.line(limits_of_sizes(pipelines.thresholds), "dim"))
        for each in pipelines.sizes:
            raced = f"{each.point.ratio:.2f}x at n={each.n} k={each.k} M = {each.point.m}"
            console.print(show.line(f"{each.size}: {show.tile(each.point.tile)}  {raced}"))


ELSEWHERE = "skipped: of a checkout of llama.cpp, which tune --llama-cpp proves again"


@app.command("verify")
def verify(
    context: typer.Context,
    device: options.Device = options.FIRST_DEVICE,
    seed: options.Seed = 0,
    json: options.Json = False,
    state: options.State = None,
    cache: options.Cache = None,
    locks: options.Locks = None,
) -> None:
    """Prove every winner of this device again, and say which are stale. Exit 1 where one is wrong or stale.

    What an older proof let through, and the present one finds right, is kept as proved by the present one.
    """
    kept = options.places(state, cache, locks).ready()
    results = []
    renewed: list[tuple[Key, Point]] = []
    with contextlib.closing(WorkerStand(device, kept)) as stand:
        limits, identity = stand.describe()
        table = Table.load(kept.state / "tables", identity)
        record = Record(Journal(kept.state / "journal"), identity, limits, options.asked(context, "verify"))
        book = Book(record, {kernel.name: kernel for kernel in for_runtime(limits.runtime)})
        if table.rows():
            record.start(seed=seed)
        for row in table.rows():
            for point in row.points:
                word = _verified(stand, table, row.key, point, seed, book, renewed)
                results.append({"matmul": row.key.problem(point.m).text(), "tile": point.tile, "result": word})
                if not json:
                    line = f"{word:<7} {results[-1]['matmul']}  {show.tile(point.tile)}"
                    show.out().print(show.line(line), soft_wrap=True)
        if renewed:
            table.save()
        for key, point in renewed:
            record.append(entries.table(identity, "put", key, point))
        if table.rows():
            record.end(tried=book.tried, rejected=book.rejected)
    good = all(each["result"] in ("right", ELSEWHERE) for each in results)
    if json:
        show.print_json({"right": good, "path": str(table.path), "rows": results})
    elif not results:
        show.out().print(Text("nothing was tuned on this device yet: warptile tune MODEL.gguf"))
    raise typer.Exit(0 if good else 1)


def _verified(
    stand: WorkerStand, table: Table, key: Key, point: Point, seed: int, book: Book, renewed: list[tuple[Key, Point]]
) -> str:
    if key.layout.startswith(CHECKOUT):
        return ELSEWHERE
    problem = key.problem(point.m)
    try:
        proof = stand.prove(point.tile, [problem], seed, PROVE_DEADLINE_S)
    except CandidateRejected as error:
        book.reject(point.tile, problem, error, PROVE_DEADLINE_S)
        return f"out: {error}"
    except UnusableInput as error:
        return f"out: {error}"
    book.proof(point.tile, problem, [problem.k], proof)
    if not proof.verdict.right:
        return f"wrong: {proof.verdict.failed}"
    if (kept := table.renew(key.problem(point.m), key.layout, PROOF_VERSION, proof.artefact)) is not None:
        renewed.append((key, kept))
        point = kept
    stale = point.validity.stale(table.identity, PROOF_VERSION, proof.artefact)
    return f"stale: {stale}" if stale else "right"


@app.command("forget")
def forget(
    format: Annotated[str | None, typer.Option("--format", help="Only this format; default: everything.")] = None,
    n: Annotated[int | None, typer.Option("--n", min=1)] = None,
    k: Annotated[int | None, typer.Option("--k", min=1)] = None,
    device: options.Device = options.FIRST_DEVICE,
    json: options.Json = False,
    state: options.State = None,
    cache: options.Cache = None,
) -> None:
    """Drop winners of this device from the table. The journal keeps what was measured, and that they were dropped."""
    if format is not None:
        known = {name.lower(): name for name in formats.all_formats()}
        format = known.get(format.lower()) or formats.by_name(format).name
    kept = options.places(state, cache).ready()
    identity = identity_of(device, kept)
    table, journal = Table.load(kept.state / "tables", identity), Journal(kept.state / "journal")
    keys = list(dict.fromkeys(row.key for row in table.rows()))
    chosen = [key for key in keys if format in (None, key.format) and n in (None, key.n) and k in (None, key.k)]
    for key in chosen:
        table.forget(key)
        journal.append(entries.table(identity, "forget", key))
    # Pipelines serve every n and k, so that one n or k alone leaves them.
    whole = n is None and k is None
    dropped = [p.key for p in table.pipelines() if whole and format in (None, p.key.format)]
    for pipeline_key in dropped:
        table.forget_pipelines(pipeline_key)
        journal.append(entries.run("pipelines forgotten", identity, key=to_json(pipeline_key)))
    table.save()
    if json:
        show.print_json({"forgotten": chosen, "pipelines": dropped, "path": str(table.path)})
    else:
        also = f", pipelines of {len(dropped)} kernels and formats" if dropped else ""
        line = f"{len(chosen)} of {len(keys)} matmuls{also} forgotten in {show.path(table.path)}"
        show.out().print(Text(line), soft_wrap=True)


@app.command("rebuild")
def rebuild(
    device: options.Device = options.FIRST_DEVICE,
    json: options.Json = False,
    state: options.State = None,
    cache: options.Cache = None,
) -> None:
    """Make the table of this device anew from the journal. A file that stands in its place must be moved away first."""
    kept = options.places(state, cache).ready()
    identity = identity_of(device, kept)
    table = rebuild_from(Journal(kept.state / "journal"), kept.state / "tables", identity)
    if table.path.exists():
        raise UnusableInput(f"table {table.path} exists: move it away, then rebuild")
    table.save()
    if json:
        show.print_json({"path": str(table.path), **table.to_json()})
    else:
        show.out().print(Text(f"{len(table.rows())} rows written to {show.path(table.path)}"), soft_wrap=True)
