"""Two versions of llama.cpp, as packages carry them; skipped where they cannot be fetched."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.llama_cpp_sources import Unreachable, sources

from warptile.llama_cpp import Checkout


@pytest.fixture(scope="session")
def fetched(pytestconfig: pytest.Config):
    def get(version: str) -> Checkout:
        cache = pytestconfig.rootpath / ".pytest_cache" / "llama_cpp"
        try:
            return Checkout.open(sources(version, Path(cache)))
        except Unreachable as error:
            pytest.skip(str(error))

    return get


@pytest.fixture(scope="session")
def newer(fetched) -> Checkout:
    return fetched("0.3.36")


@pytest.fixture(scope="session")
def older(fetched) -> Checkout:
    """Of February 2024: before the clamps, with its shaders compiled ahead."""
    return fetched("0.2.42")
