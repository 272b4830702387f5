"""The fleet on a real Ray cluster of several nodes: workers and nodes that die under it, cards that hang.

The cards are arithmetic (their answers are known), so that what is tested is who did what, not how fast.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from warptile.contracts import Problem, UnusableInput
from warptile.fleet import engine as engines
from warptile.fleet.cluster import alive_nodes, cluster
from warptile.fleet.engine import Engine, Work
from warptile.fleet.items import Item, Outcome
from warptile.fleet.schedule import Schedule

ray = pytest.importorskip("ray")
ABOUT = {"device": "Paper card", "driver": "1", "compiler": "1", "runtime": "paper"}


class PaperCard:
    """Answers after a moment with its process and its node; its folder says what it must do first."""

    def __init__(self, device: str, folder: str, places: object) -> None:
        self._folder = Path(folder)
        if device == "paper:broken":
            raise UnusableInput("no driver for paper:broken")

    def about(self) -> dict[str, Any]:
        return ABOUT

    def measure(self, problem: dict[str, Any], budget: float, tensor: object, blocks: Any, kept: Any) -> dict[str, Any]:
        order = self._folder / f"{problem['n']}"
        while order.exists():
            # Taken by one card only; the next that is given the item works.
            what = order.read_text()
            order.unlink(missing_ok=True)
            if what == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            if what == "hang":
                time.sleep(600)
            if what == "fail":
                raise ValueError("the kernel is wrong")
        time.sleep(0.05)
        total = 0 if blocks is None else int(blocks.sum())
        return {"identity": ABOUT, "point": {"sum": total}, "why": "", "lines": [], "node": os.environ.get("PAPER", "")}

    def close(self) -> None:
        return


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """A cluster of three nodes on this machine; each is asked for its devices by the engine."""
    from ray.cluster_utils import Cluster

    # Workers cannot import a test's module: its functions and classes travel whole.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    made = Cluster()
    common = {"num_cpus": 1, "object_store_memory": 80_000_000}
    made.add_node(node_name="a", include_dashboard=False, **common)
    made.add_node(node_name="b", **common)
    made.victim = made.add_node(node_name="c", **common)
    yield made
    made.shutdown()


def paper_nodes() -> dict[str, Any]:
    return {"version": "0.1.0", "devices": [{"id": "paper:0", "name": "Paper card"}], "reasons": []}


def items(count: int) -> list[Item]:
    return [Item("Paper card (paper)", Problem("Q4_K", 256 * (i + 1), 256, 16), seconds=1.0) for i in range(count)]


def test_deaths_hangs_and_failures_cost_a_retry_and_lose_nothing(
    nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "survey_node", paper_nodes)
    monkeypatch.setattr(engines, "PATIENCE", (1.0, 4.0))
    monkeypatch.setattr(engines, "NODES_EVERY_S", 0.5)
    orders = {256: "die", 512: "fail", 768: "hang"}
    for n, what in orders.items():
        (tmp_path / str(n)).write_text(what)
    said: list[str] = []
    outcomes: list[Outcome] = []
    with cluster(nodes.address):
        import numpy as np

        blocks = ray.put(np.arange(10, dtype=np.uint8))
        with closing(Engine(None, str(tmp_path), lambda item: Work(None, blocks), said.append, PaperCard)) as engine:
            found = engine.seat_all()
            assert [card.node for card, _ in found] == ["a", "b", "c"]
            schedule = Schedule(items(40), checks=0)
            for card, _ in found:
                schedule.join(card)
            lost_node = False

            def tick() -> None:
                nonlocal lost_node
                if not lost_node and len(outcomes) > 5:
                    lost_node = True
                    nodes.remove_node(nodes.victim, allow_graceful=False)

            engine.run(schedule, outcomes.append, tick)
            assert lost_node
    assert sorted(o.state for o in outcomes) == ["done"] * 40
    assert len({o.item.key for o in outcomes}) == 40
    assert {o.result["point"]["sum"] for o in outcomes if o.result} == {45}
    again = {o.item.problem.n: o.attempts for o in outcomes if o.attempts > 1}
    assert set(orders) <= set(again)
    assert any("started again" in line for line in said)
    assert any(line.startswith("c/paper:0: gone") for line in said)


def test_a_node_without_a_device_and_a_card_that_does_not_open_are_lines(
    nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def surveyed() -> dict[str, Any]:
        return {"version": "0.1.0", "devices": [{"id": "paper:broken", "name": "B"}], "reasons": []}

    said: list[str] = []
    with cluster(nodes.address):
        monkeypatch.setattr(engines, "survey_node", surveyed)
        with closing(Engine(None, str(tmp_path), lambda item: Work(), said.append, PaperCard)) as engine:
            assert engine.seat_all() == []
        monkeypatch.setattr(engines, "survey_node", lambda: {"version": "0.0.1", "devices": [], "reasons": []})
        with closing(Engine(None, str(tmp_path), lambda item: Work(), said.append, PaperCard)) as engine:
            assert engine.seat_all() == []
        monkeypatch.setattr(
            engines, "survey_node", lambda: {"version": "0.1.0", "devices": [], "reasons": ["no loader"]}
        )
        with closing(Engine(None, str(tmp_path), lambda item: Work(), said.append, PaperCard)) as engine:
            assert engine.seat_all() == []
        names = [node.name for node in alive_nodes()]
    assert "node a, paper:broken: no driver for paper:broken" in said
    assert "node a: has warptile 0.0.1, not 0.1.0; left out" in said
    assert "node a: no device to tune (no loader)" in said
    assert names[:2] == ["a", "b"]


def test_an_address_where_nothing_listens_is_one_line_at_once() -> None:
    with pytest.raises(UnusableInput, match=r"Ray at 127.0.0.1:9: cannot be reached"), cluster("127.0.0.1:9"):
        pass
