"""The fleet on Ray: nodes are asked for their devices, every device becomes an actor, the schedule says who does what.

Ray moves the work and notices deaths; all decisions are in `schedule` and `verdicts`. What travels is data: problems,
tiles and journal lines as JSON values, weights as arrays.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warptile import __version__
from warptile.contracts import Problem
from warptile.fleet.cluster import Node, alive_nodes, require_ray
from warptile.fleet.items import Card, Item, Outcome, kind_of
from warptile.fleet.node import TensorShipped
from warptile.fleet.schedule import Schedule
from warptile.places import Places

RESTARTS = 2
"""An actor that died is started again this often; then its card counts as gone."""

REOPEN_S = (0.0, 2.0, 6.0)
"""Pauses before each try to open a device again."""

NODES_EVERY_S = 5.0
OPEN_DEADLINE_S = 180.0
PATIENCE = (10.0, 180.0)
"""An item may take ten times its seconds and three minutes more; then its card counts as hung."""


@dataclass(frozen=True)
class Work:
    """Where an item's weights come from: what travels with it, and a Ray reference to the blocks (None: drawn)."""

    tensor: TensorShipped | None = None
    blocks: Any = None


@dataclass
class _Seat:
    """A card and the actor that holds it."""

    card: Card
    actor: Any
    node: Node
    identity: dict[str, Any]
    deaths: int = 0
    item: Item | None = None
    ref: Any = None
    due: float = 0.0


class Engine:
    """Cards of a running Ray cluster under one schedule.

    work: an item's weights. folder: where, on every node, cards keep what they are at. say: told of everything a person
    should know, one line each. only: devices whose id or name holds this text, of the nodes that join later too.
    """

    def __init__(
        self,
        places: Places | None,
        folder: str,
        work: Callable[[Item], Work],
        say: Callable[[str], None],
        actor: Callable[..., Any] | None = None,
        only: str = "",
    ) -> None:
        self._ray = require_ray()
        self._places, self._folder, self._work, self._say, self._only = places, folder, work, say, only
        self._class = self._ray.remote(actor if actor is not None else CardActor)
        self._seats: dict[str, _Seat] = {}
        self._asked: set[str] = set()
        self._looked = 0.0

    def seat_all(self) -> list[tuple[Card, dict[str, Any]]]:
        """Ask every node not asked before; (card, identity) of each new device that could be opened."""
        found: list[tuple[Card, dict[str, Any]]] = []
        opening: list[tuple[Node, dict[str, Any], Any, Any]] = []
        for node in alive_nodes():
            if node.id in self._asked:
                continue
            self._asked.add(node.id)
            for device in self._devices(node):
                actor = self._start(node, device["id"], device["name"])
                opening.append((node, device, actor, actor.about.remote()))
        for node, device, actor, ref in opening:
            about = self._opened(node, device["id"], actor, ref)
            if about is None:
                continue
            card = Card(kind_of(about["device"], about["runtime"]), node.name, device["id"])
            self._seats[card.name] = _Seat(card, actor, node, about)
            found.append((card, about))
        self._looked = time.monotonic()
        return found

    def _devices(self, node: Node) -> list[dict[str, Any]]:
        task = self._ray.remote(survey_node).options(num_cpus=0, scheduling_strategy=node.here(), max_retries=1)
        try:
            told = self._ray.get(task.remote(), timeout=OPEN_DEADLINE_S)
        except Exception as error:
            self._say(f"node {node.name}: cannot be asked for its devices: {_line(error)}")
            return []
        if told["version"] != __version__:
            self._say(f"node {node.name}: has warptile {told['version']}, not {__version__}; left out")
            return []
        devices = [d for d in told["devices"] if self._only in d["id"] or self._only in d["name"]]
        if not devices:
            self._say(f"node {node.name}: no device to tune ({'; '.join(told['reasons']) or 'none matches'})")
        return devices

    def _start(self, node: Node, device: str, name: str) -> Any:
        resource = f"warptile:{name}"
        asked = {resource: 1} if node.resources.get(resource) else {}
        options = {"num_cpus": 0, "max_restarts": 0, "scheduling_strategy": node.here(), "resources": asked}
        places = None if self._places is None else (str(self._places.cache), str(self._places.locks))
        return self._class.options(**options).remote(device, self._folder, places)

    def _opened(self, node: Node, device: str, actor: Any, ref: Any) -> dict[str, Any] | None:
        try:
            about: dict[str, Any] = self._ray.get(ref, timeout=OPEN_DEADLINE_S)
            return about
        except Exception as error:
            self._say(f"node {node.name}, {device}: {_line(error)}")
            with suppress(Exception):
                self._ray.kill(actor)
            return None

    def run(self, schedule: Schedule, on_outcome: Callable[[Outcome], None], tick: Callable[[], None]) -> None:
        """Until the schedule is over. on_outcome: called once for each item done or lost; tick: about once a second."""
        schedule.news.clear()
        while True:
            for seat in list(self._seats.values()):
                self._hand_out(schedule, seat)
            self._report(schedule, on_outcome)
            if schedule.over and not any(seat.item for seat in self._seats.values()):
                break
            refs = {seat.ref: seat for seat in self._seats.values() if seat.ref is not None}
            if refs:
                ready, _ = self._ray.wait(list(refs), num_returns=1, timeout=1.0)
                for ref in ready:
                    self._settle(schedule, refs[ref])
            self._hung(schedule)
            self._look(schedule)
            tick()
        schedule.strand("no card of its kind joined")
        self._report(schedule, on_outcome)

    @staticmethod
    def _report(schedule: Schedule, on_outcome: Callable[[Outcome], None]) -> None:
        news, schedule.news[:] = list(schedule.news), []
        for outcome in news:
            on_outcome(outcome)

    def _hand_out(self, schedule: Schedule, seat: _Seat) -> None:
        if seat.item is not None or (item := schedule.take(seat.card.name)) is None:
            return
        work = self._work(item)
        kept = schedule.winner(item) if item.role == "check" else None
        seat.item = item
        seat.due = time.monotonic() + PATIENCE[0] * item.seconds + PATIENCE[1]
        tensor = None if work.tensor is None else (work.tensor.name, work.tensor.type_id, work.tensor.digest)
        seat.ref = seat.actor.measure.remote(problem_values(item.problem), item.seconds, tensor, work.blocks, kept)

    def _settle(self, schedule: Schedule, seat: _Seat) -> None:
        item, ref = seat.item, seat.ref
        assert item is not None
        seat.item = seat.ref = None
        name = seat.card.name
        try:
            result = self._ray.get(ref)
        except self._ray.exceptions.RayTaskError as error:
            schedule.failed(item, name, _line(error))
        except Exception as error:
            dead = isinstance(error, self._ray.exceptions.RayActorError)
            reason = "its worker process died" if dead else _line(error)
            schedule.failed(item, name, reason)
            self._revive(schedule, seat, reason)
        else:
            if result["point"] is None:
                schedule.failed(item, name, result["why"] or "nothing valid was found")
            else:
                schedule.done(item, name, {**result, "card": name})

    def _hung(self, schedule: Schedule) -> None:
        for seat in list(self._seats.values()):
            if seat.item is not None and time.monotonic() > seat.due:
                item, seat.item, seat.ref = seat.item, None, None
                reason = f"hung: nothing came within {PATIENCE[0] * item.seconds + PATIENCE[1]:.0f} s"
                schedule.failed(item, seat.card.name, reason)
                with suppress(Exception):
                    self._ray.kill(seat.actor)
                self._revive(schedule, seat, reason)

    def _revive(self, schedule: Schedule, seat: _Seat, reason: str) -> None:
        """A new actor for a card whose old one is dead, while its node lives; otherwise the card leaves."""
        seat.deaths += 1
        name = seat.card.name
        if seat.deaths <= RESTARTS and any(n.id == seat.node.id for n in alive_nodes()):
            about = None
            # What held the device besides the dead actor (its own child, for a moment) has let go by then.
            for pause in REOPEN_S:
                time.sleep(pause)
                seat.actor = self._start(seat.node, seat.card.device, seat.identity["device"])
                about = self._opened(seat.node, seat.card.device, seat.actor, seat.actor.about.remote())
                if about is not None:
                    break
            if about == seat.identity:
                self._say(f"{name}: started again ({reason})")
                return
            if about is not None:
                reason = "came back as another device, driver or compiler"
        self._say(f"{name}: gone ({reason})")
        self._seats.pop(name, None)
        schedule.leave(name, reason)

    def _look(self, schedule: Schedule) -> None:
        """Nodes that are lost, and nodes that joined."""
        if time.monotonic() - self._looked < NODES_EVERY_S:
            return
        self._looked = time.monotonic()
        alive = {node.id for node in alive_nodes()}
        for seat in list(self._seats.values()):
            if seat.node.id not in alive:
                self._say(f"{seat.card.name}: gone (its node was lost)")
                self._seats.pop(seat.card.name)
                schedule.leave(seat.card.name, "its node was lost")
        if alive - self._asked:
            for card, _ in self.seat_all():
                schedule.join(card)

    def close(self) -> None:
        """End every actor, so that devices and locks are free."""
        for seat in self._seats.values():
            with suppress(Exception):
                self._ray.get(seat.actor.close.remote(), timeout=15 if seat.item is None else 0)
            with suppress(Exception):
                self._ray.kill(seat.actor)
        self._seats.clear()


class CardActor:
    """A card inside its actor process: `node.NodeCard` behind plain values."""

    def __init__(self, device: str, folder: str, places: tuple[str, str] | None) -> None:
        from warptile.fleet.node import NodeCard

        base = Places.default()
        if places is not None:
            base = Places(Path(places[0]), base.state, Path(places[1]))
        name = "".join(c if c.isalnum() else "-" for c in device)
        self._card = NodeCard(device, Path(folder) / f"{name}-{id(self):x}", base)

    def about(self) -> dict[str, Any]:
        """The device's identity."""
        from warptile.journal import to_json

        values: dict[str, Any] = to_json(self._card.identity)
        return values

    def measure(
        self,
        problem: Mapping[str, Any],
        budget: float,
        tensor: tuple[str, int, str] | None,
        blocks: Any,
        kept: Mapping[str, Any] | None,
    ) -> dict[str, Any]:
        """See `NodeCard.measure`."""
        from warptile.fleet.node import point_of

        shipped = None if tensor is None else TensorShipped(*tensor)
        known = None if kept is None else point_of(kept)
        return self._card.measure(Problem(**problem), budget, 0, shipped, blocks, known)

    def close(self) -> None:
        """Give the device back."""
        self._card.close()


def problem_values(problem: Problem) -> dict[str, Any]:
    """A problem's fields, which `Problem(**fields)` takes."""
    return {name: getattr(problem, name) for name in problem.__dataclass_fields__}


def survey_node() -> dict[str, Any]:
    """What a node has: warptile's version, its devices (id, name), and why a runtime has none. Runs on the node."""
    from warptile.runtimes import survey

    found = survey()
    return {
        "version": __version__,
        "devices": [{"id": d.id, "name": d.name} for d in found.devices],
        "reasons": [reason for _, reason in found.reasons],
    }


def _line(error: BaseException) -> str:
    """The last line of an error: Ray puts the remote traceback before it."""
    cause = getattr(error, "cause", None)
    lines = [
        line.strip() for line in str(cause if isinstance(cause, Exception) else error).splitlines() if line.strip()
    ]
    return re.sub(r"^warptile[\w.]+: ", "", lines[-1]) if lines else type(error).__name__


def cards_text(cards: Sequence[Card]) -> str:
    """How many cards of which kind: `2 x llvmpipe (vulkan)`."""
    kinds = sorted({c.kind for c in cards})
    return ", ".join(f"{sum(c.kind == kind for c in cards)} x {kind}" for kind in kinds)
