"""`tune_fleet`: many models, many cards, one journal."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warptile import __version__, formats, workloads
from warptile.contracts import Decision, Identity, Problem, UnusableInput, Workload
from warptile.contracts.samples import sample_type
from warptile.fleet.cluster import LOCAL, cluster
from warptile.fleet.engine import Engine, Work, cards_text
from warptile.fleet.items import Card, Item, Outcome
from warptile.fleet.node import TensorShipped, digest, point_of
from warptile.fleet.schedule import CHECK_SHARE, CHECKS, Schedule
from warptile.fleet.verdicts import Agreement, Measured, agree
from warptile.gguf import open_gguf
from warptile.journal import Asked, Journal, entries, from_json, to_json
from warptile.places import Places
from warptile.proof.version import PROOF_VERSION
from warptile.tables import Key, Point, Table
from warptile.tuning.result import bare

ITEM_SECONDS = (15.0, 600.0)
"""Least and most that one search is given."""


@dataclass(frozen=True)
class FleetEvent:
    """The fleet's state, for a person who watches. running: (card, matmul) now; line: news, or ""."""

    done: int
    lost: int
    running: tuple[tuple[str, str], ...]
    waiting: int
    line: str = ""


@dataclass(frozen=True)
class FleetRow:
    """What a kind of device now serves for a matmul, and how its cards agreed. point: as its table has it."""

    kind: str
    problem: Problem
    point: Point
    agreement: Agreement


@dataclass(frozen=True)
class FleetResult:
    """The end of a fleet's tune. lost: (item, reason) that no card could finish. odd: cards that disagreed with the
    others of their kind, and in how many matmuls. notes: one line each."""

    cards: tuple[Card, ...]
    rows: tuple[FleetRow, ...]
    lost: tuple[tuple[str, str], ...]
    odd: tuple[tuple[str, int], ...]
    tables: tuple[Path, ...]
    journal: Path
    recalled: int
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        value: dict[str, Any] = to_json(
            {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in ("tables", "journal")}
        )
        return value | {"tables": [str(t) for t in self.tables], "journal": str(self.journal)}


Watch = Callable[[FleetEvent], None]


def tune_fleet(
    sources: Sequence[str | Path],
    address: str = LOCAL,
    ms: Sequence[int] = (128,),
    budget: float = 3600.0,
    places: Places | None = None,
    watch: Watch | None = None,
    dtype: str | None = None,
    device: str = "",
    checks: int = CHECKS,
    asked: Asked | None = None,
) -> FleetResult:
    """Tune every matmul of `sources` on every kind of device of a Ray cluster, each decided by its cards together.

    address: see `cluster.cluster`. budget: seconds the whole should take; what a search is given follows from it and
    the cards. device: only devices whose id or name holds this text. checks: further cards that check a winner.
    asked: for the journal, who asked and why. What an earlier run finished under the same drivers, compilers and proof
    is taken from the journal. Raises UnusableInput: a source, the cluster, the journal or a table cannot be used, or no
    node has a device.
    """
    kept = (places or Places.default()).ready()
    loaded = [workloads.load(source) for source in sources]
    with cluster(address) as ray:
        run = _Run(ray, kept, loaded, ms, budget, watch, dtype, checks, asked)
        own = places if address == LOCAL else None
        with closing(Engine(own, str(kept.cache / "fleet" / "cards"), run.work, run.say, only=device)) as engine:
            found = engine.seat_all()
            if not found:
                raise UnusableInput("no node of the cluster has a device: " + ("; ".join(run.notes) or "none"))
            return run.on(engine, found)


class _Run:
    """One fleet's tune: what is asked, what came back, what is decided."""

    def __init__(
        self,
        ray: Any,
        places: Places,
        loaded: Sequence[Workload],
        ms: Sequence[int],
        budget: float,
        watch: Watch | None,
        dtype: str | None,
        checks: int,
        asked: Asked | None = None,
    ) -> None:
        self._asked = asked or Asked("fleet")
        self._ray, self._places, self._loaded, self._ms, self._budget = ray, places, loaded, ms, budget
        self._watch, self._dtype, self._checks = watch, dtype, checks
        self._journal = Journal(places.state / "journal")
        self._tables: dict[str, Table] = {}
        self._rows: dict[tuple[str, str], FleetRow] = {}
        self._blocks: dict[tuple[str, str], Work] = {}
        self._odd: dict[str, int] = defaultdict(int)
        self._schedule: Schedule | None = None
        self.notes: list[str] = []

    def say(self, line: str) -> None:
        """A line for the person and the result."""
        self.notes.append(line)
        self._show(line)

    def on(self, engine: Engine, found: Sequence[tuple[Card, dict[str, Any]]]) -> FleetResult:
        """Run to the end on the cards found."""
        cards = [card for card, _ in found]
        identities = {card.kind: from_json(Identity, about) for card, about in found}
        self._tables = {kind: Table.load(self._places.state / "tables", who) for kind, who in identities.items()}
        finished = self._finished({kind: to_json(who) for kind, who in identities.items()})
        schedule = self._schedule = Schedule(self._items(cards, identities), finished, self._checks)
        recalled = schedule.counts()["done"]
        self._journal.append(
            entries.start(
                None,
                self._asked,
                __version__,
                fleet=[c.name for c in cards],
                sources=[w.source for w in self._loaded],
                ms=list(self._ms),
            )
        )
        self.say(f"fleet of {cards_text(cards)}")
        for card in cards:
            schedule.join(card)
        for outcome in list(schedule.outcomes.values()):
            self._decide(outcome)
        try:
            engine.run(schedule, self._take, self._show)
        except KeyboardInterrupt:
            self._journal.append(entries.run("interrupted", None, **schedule.counts()))
            raise
        self._journal.append(entries.run("end", None, **schedule.counts()))
        lost = tuple((o.item.key, o.reason) for o in schedule.outcomes.values() if o.state == "lost")
        return FleetResult(
            tuple(cards), tuple(self._rows.values()), lost, tuple(sorted(self._odd.items())),
            tuple(table.path for table in self._tables.values()), self._journal.path, recalled, tuple(self.notes),
        )  # fmt: skip

    def _items(self, cards: Sequence[Card], identities: Mapping[str, Identity]) -> list[Item]:
        asked: list[Item] = []
        for kind, who in identities.items():
            usual = "fp32" if who.runtime == "vulkan" else "fp16"
            dtype = sample_type(self._dtype, usual)
            for workload in self._loaded:
                for m in self._ms:
                    for problem in workload.problems(m):
                        if problem.experts == 1 and self._served(problem):
                            typed = dataclasses.replace(bare(problem), x_dtype=dtype, y_dtype=dtype)
                            asked.append(Item(kind, typed, source=workload.source))
        unique = list({item.key: item for item in asked}.values())
        many = {kind: sum(item.kind == kind for item in unique) for kind in identities}
        timed = []
        for item in unique:
            mine = sum(card.kind == item.kind for card in cards)
            load = many[item.kind] * (1 + CHECK_SHARE * min(self._checks, mine - 1))
            seconds = min(max(self._budget * mine / load, ITEM_SECONDS[0]), ITEM_SECONDS[1])
            timed.append(dataclasses.replace(item, seconds=seconds))
        return timed

    @staticmethod
    def _served(problem: Problem) -> bool:
        try:
            return problem.k % formats.by_name(problem.format).block_size == 0
        except (UnusableInput, KeyError):
            return False

    def _finished(self, identities: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Results of items that the journal has for exactly these drivers, compilers and this proof."""
        found = {}
        for entry in self._journal.read().entries:
            if entry["kind"] == "fleet" and entry.get("event") == "done":
                result = entry.get("result") or {}
                if result.get("proof") == PROOF_VERSION and result.get("identity") == identities.get(entry["of"]):
                    found[str(entry["item"])] = result
        return found

    def work(self, item: Item) -> Work:
        """The weights of an item: the model's first tensor of its shape, put into Ray's store once."""
        for workload in self._loaded:
            if workload.source != item.source or not Path(item.source).is_file() or item.source.endswith(".toml"):
                continue
            p = item.problem
            for row in workload.rows:
                if (row.format, row.n, row.k) == (p.format, p.n, p.k) and row.tensors and row.role != "experts":
                    return self._shipped(item.source, row.tensors[0])
        return Work()

    def _shipped(self, source: str, tensor: str) -> Work:
        if (source, tensor) not in self._blocks:
            file = open_gguf(source)
            blocks = file.blocks(tensor)
            about = TensorShipped(tensor, file.tensor(tensor).type_id, digest(blocks))
            self._blocks[source, tensor] = Work(about, self._ray.put(blocks))
        return self._blocks[source, tensor]

    def _take(self, outcome: Outcome) -> None:
        """An item is over: its lines go into the journal, its facts after them, and what is decided by it last."""
        item, result = outcome.item, dict(outcome.result or {})
        for line in result.pop("lines", ()):
            self._journal.append({**line, "card": outcome.card})
        facts = {"item": item.key, "of": item.kind, "problem": item.problem, "role": item.role, "card": outcome.card}
        self._journal.append(
            entries.fleet(outcome.state, **facts, attempts=outcome.attempts, reason=outcome.reason, result=result)
        )
        if outcome.state == "lost":
            self.say(f"lost: {item.key}: {outcome.reason}")
        self._decide(outcome)

    def _decide(self, outcome: Outcome) -> None:
        """Where every card has answered for a matmul: one decision for the kind, into its table."""
        schedule, item = self._schedule, outcome.item
        assert schedule is not None
        if (item.kind, item.problem_key) in self._rows or not schedule.complete(item):
            return
        answers = schedule.results_of(item)
        points = [(o.card, found[1]) for o in answers if (found := point_of(o.result or {})) is not None]
        measured = [Measured(card, p.ratio, p.low, p.high, p.floor, p.outcome) for card, p in points]
        if not measured:
            return
        key, first = point_of(answers[0].result or {}) or (None, None)
        assert key is not None
        assert first is not None
        told = agree(measured)
        self._keep(item, key, joint_point(first, told), told)

    def _keep(self, item: Item, key: Key, point: Point, told: Agreement) -> None:
        table = self._tables[item.kind]
        decision = Decision(point.outcome, point.reason)
        self._journal.append(entries.decision(table.identity, item.problem, point.stock, point.tile, decision))
        self._journal.append(entries.table(table.identity, "put", key, point))
        table.put(item.problem, key.layout, point)
        table.save()
        self._rows[item.kind, item.problem_key] = FleetRow(item.kind, item.problem, point, told)
        for card in told.odd:
            self._odd[card] += 1
            self.say(f"{card} disagrees with the other cards of its kind on {item.problem_key}: {told.reason}")

    def _show(self, line: str = "") -> None:
        if self._watch is not None:
            counts = self._schedule.counts() if self._schedule else {"done": 0, "lost": 0, "waiting": 0}
            running = self._schedule.running() if self._schedule else []
            shown = tuple((card, f"{item.role} {item.problem_key}") for item, card in running)
            self._watch(FleetEvent(counts["done"], counts["lost"], shown, counts["waiting"], line))


def joint_point(first: Point, told: Agreement) -> Point:
    """The search's point with all cards' ratio. Where they do not accept its winner, the stock tile is served."""
    if first.tile == first.stock or not first.stock:
        return first
    if told.outcome == "accept":
        return dataclasses.replace(
            first, ratio=told.ratio, low=told.low, high=told.high, outcome="accept", reason=told.reason
        )
    if first.outcome != "accept":
        return first
    return dataclasses.replace(
        first, tile=first.stock, seconds=first.stock_seconds, ratio=1.0, low=1.0, high=1.0, outcome="undecided",
        reason=told.reason,
    )  # fmt: skip
