"""Command lines that nobody meant: exit code 0, 1 or 2, and on 2 one line that says what is wrong."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.changes import CORPUS
from warptile.cli import run

# What needs a device gets one that is nowhere, so that nothing is opened, timed or written but under the state folder.
NOWHERE = ("--device", "nowhere:0")
VERBS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("check",): ("--tile", "--kernel", "--format", "--device", "--n", "--k", "--m", "--json", "--dtype"),
    ("tune",): ("--m", "--budget", "--dtype", "--routing", "--seed", "--explore", "--json"),
    ("bench", "ops"): ("--m", "--budget", "--json", "--seed"),
    ("prove",): ("--tile", "--kernel", "--format", "--level", "--json", "--seed"),
    ("study",): ("--device", "--json", "--arms"),
    ("journal", "list"): ("--kind", "--format", "--run", "--limit", "--since", "--json"),
    ("journal", "search"): ("--kernel", "--until", "--limit", "--json"),
    ("journal", "show"): ("--json",),
    ("journal", "merge"): ("--json",),
    ("table", "forget"): ("--format", "--n", "--k", "--json"),
    ("inspect",): ("--json",),
    ("trace",): ("--against", "--prompt", "--json"),
    ("explain",): ("--json",),
    ("nonsense",): (),
}
FILES = [str(path) for path in sorted(CORPUS.glob("*/*")) if path.suffix]
WORDS = (
    "", "-", "--", "-1", "0", "1,2", "1e99", "9" * 30, "nan", "é", "\x1b[2J", "a\nb", "..", "/", "/dev/null",
    "Q4_K", "q4_k", "mul_mm", "mul_mm:1", "vulkan.mul_mm:128,128,128,32,32,64,2,4,2,1,16", "gemm:x=", ":",
    "mali-g610", "vulkan:99", "smollm2-135m", "mali-g610.toml", "5m", "uniform", "zipf:x", "--help", "--jsn", "race",
    "2026-11-30", "[bold]", "%s", "*",
)  # fmt: skip
WORD = st.one_of(st.sampled_from(WORDS), st.sampled_from(FILES))


@st.composite
def command_lines(draw: st.DrawFn) -> tuple[str, ...]:
    verb = draw(st.sampled_from(list(VERBS)))
    rest: list[str] = []
    for _ in range(draw(st.integers(0, 4))):
        options = VERBS[verb]
        if options and draw(st.booleans()):
            rest.append(draw(st.sampled_from(options)))
        rest.append(draw(WORD))
    return (*verb, *rest)


def test_any_command_line_ends_with_a_code_and_a_line(tmp_path: Path) -> None:
    state = ("--state", str(tmp_path / "state"))

    @settings(
        max_examples=80,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(command_lines())
    def refused_or_done(line: tuple[str, ...]) -> None:
        verb = line[0]
        given_too = state if verb in ("journal", "table", "tune", "prove", "bench") else ()
        where = NOWHERE if verb in ("tune", "bench", "prove", "table", "trace", "explain", "study") else ()
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = run([*line, *given_too, *where])
        assert code in (0, 1, 2)
        if code == 2:
            (said,) = [text for text in err.getvalue().splitlines() if not text.startswith("[")]
            assert said.startswith("warptile: ")
            assert said.isprintable()

    refused_or_done()
