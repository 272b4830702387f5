"""A Ray cluster: joined by address, or a local one for this run, on the loopback."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from warptile.contracts import MissingExtra, UnusableInput

LOCAL = "local"
_CONNECT_S = 5.0


@dataclass(frozen=True)
class Node:
    """An alive node. name: as given to `ray start --node-name`, else its address; told apart by a number if need be."""

    id: str
    name: str
    resources: dict[str, float] = field(default_factory=dict)

    def here(self) -> Any:
        """The scheduling strategy that puts work on this node and nowhere else."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return NodeAffinitySchedulingStrategy(self.id, soft=False)


def require_ray() -> Any:
    """The package. Raises MissingExtra naming the extra that brings it."""
    try:
        import ray
    except ModuleNotFoundError:
        raise MissingExtra("a fleet", "fleet") from None
    return ray


def alive_nodes() -> list[Node]:
    """Nodes that live, in the order of their names."""
    ray = require_ray()
    found = sorted(
        (node for node in ray.nodes() if node["Alive"]), key=lambda n: (n.get("NodeName") or "", n["NodeID"])
    )
    names = [node.get("NodeName") or node["NodeManagerAddress"] for node in found]
    seen: dict[str, int] = {}
    nodes = []
    for node, name in zip(found, names, strict=True):
        seen[name] = seen.get(name, 0) + 1
        told = name if names.count(name) == 1 else f"{name}#{seen[name]}"
        nodes.append(Node(node["NodeID"], told, dict(node["Resources"])))
    return nodes


@contextmanager
def cluster(address: str) -> Iterator[Any]:
    """Ray, connected while the block runs. address: "local" starts a cluster of this machine alone on the loopback,
    "auto" joins the one this machine belongs to, HOST:PORT one by its address.

    Raises MissingExtra without Ray; UnusableInput where the address cannot be reached, the cluster runs another version
    of Ray or Python, or this process is in a cluster already.
    """
    ray = require_ray()
    if ray.is_initialized():
        raise UnusableInput("this process is connected to a Ray cluster already")
    _reachable(address)
    # Ray reports usage to its makers unless told otherwise before it starts.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": True}
    if address == LOCAL:
        options |= {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    try:
        ray.init(address=address, **options)
    except Exception as error:
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise UnusableInput(f"Ray at {address}: {reason}") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _reachable(address: str) -> None:
    """Raise UnusableInput where nothing listens at HOST:PORT: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S).close()
    except (OSError, OverflowError) as error:
        raise UnusableInput(f"Ray at {address}: cannot be reached: {error}") from None
