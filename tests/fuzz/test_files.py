"""Files that somebody else wrote: a right answer or one clear line, whatever is in them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.changes import bytes_changed, json_changed, sound
from tests.fuzz.targets import TARGETS, run

EXAMPLES = {"gguf": 120, "table": 60, "journal": 40, "study": 40, "shapes": 60, "tile": 120, "trace": 60, "routing": 40}
JSON = ("table", "journal", "trace", "routing")


def strategy(name: str) -> st.SearchStrategy[bytes]:
    samples = sound(name)
    texts = [each for each in samples if each[:1] in (b"{", b"[")] if name in JSON else []
    return st.one_of(bytes_changed(samples), json_changed(texts)) if texts else bytes_changed(samples)


@pytest.mark.parametrize("name", TARGETS)
def test_the_kept_corpus_is_read(name: str, tmp_path: Path) -> None:
    """Some of it is sound: a target that refuses everything tests nothing."""
    assert "" in [run(name, data, tmp_path / str(i)) for i, data in enumerate(sound(name))]


@pytest.mark.parametrize("name", TARGETS)
def test_a_changed_file_is_read_or_refused_in_a_line(name: str) -> None:
    @settings(
        max_examples=EXAMPLES[name],
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(strategy(name))
    def changed(data: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            run(name, data, Path(folder))

    changed()
