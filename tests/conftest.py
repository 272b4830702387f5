"""Fixtures every room shares: private folders, and one open software device."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Triton decides at its own import whether kernels run in its interpreter, and any test may be the first to import it.
os.environ["TRITON_INTERPRET"] = "1"

from tests.mutants.summary import write_summary
from warptile.contracts import Runtime
from warptile.places import Places
from warptile.runtimes import open_device, survey
from warptile.runtimes.vulkan import embedded


@pytest.fixture(scope="session", autouse=True)
def own_locks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Suites that run side by side on one machine do not refuse each other its software device."""
    folder = tmp_path_factory.mktemp("locks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warptile.places.MACHINE_LOCKS", folder)
        yield folder


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    return Places.under(tmp_path_factory.mktemp("places"))


@pytest.fixture(scope="session")
def software_device() -> str:
    found = survey()
    software = [entry.id for entry in found.devices if entry.runtime == "vulkan" and entry.type == "software"]
    if not software and (folder := embedded.find()) is not None:
        embedded.activate(folder)
        found = survey()
        software = [entry.id for entry in found.devices if entry.runtime == "vulkan" and entry.type == "software"]
    assert software, f"the tests need a software Vulkan device: {found.reasons or found.devices}"
    return software[0]


@pytest.fixture(scope="session")
def interpreter(places: Places) -> Iterator[Runtime]:
    """Triton's interpreter as a device."""
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    runtime = open_device("interpreter:0", places)
    yield runtime
    runtime.close()


@pytest.fixture(scope="session")
def device(software_device: str, places: Places) -> Iterator[Runtime]:
    runtime = open_device(software_device, places)
    yield runtime
    runtime.close()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    write_summary(terminalreporter)
