"""Coverage-guided fuzzing of one target, by hand.

    pip install atheris
    python tests/fuzz/by_hand.py TARGET [-max_total_time=300 ...]

TARGET: gguf, table, journal, study, shapes, tile, trace or routing. What is found that covers something new stays in
`found/TARGET` (not in the repository); an input that breaks the promise is written to the working folder as crash-*.
The corpus that is kept, `corpus/TARGET`, is read first. Options are libFuzzer's.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent), str(HERE.parent.parent / "src")]

with atheris.instrument_imports(include=["warptile"]):
    from tests.fuzz.targets import TARGETS, run


def main() -> None:
    name = sys.argv.pop(1)
    if name not in TARGETS:
        raise SystemExit(f"no target {name!r}; there are {', '.join(TARGETS)}")
    found = HERE / "found" / name
    found.mkdir(parents=True, exist_ok=True)

    def one(data: bytes) -> None:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            run(name, data, Path(folder))

    limits = ["-timeout=20", "-rss_limit_mb=1024", "-max_len=20000"]
    atheris.Setup([sys.argv[0], *limits, *sys.argv[1:], str(found), str(HERE / "corpus" / name)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
