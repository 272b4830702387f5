"""Changes of a sound file: bytes of any kind of file, values of a JSON text."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

CORPUS = Path(__file__).resolve().parent / "corpus"
TOKENS = (
    b"null", b"-1", b"0", b"1e999", b"-1e-999", b"NaN", b"Infinity", b"{}", b"[]", b'""', b"true", b"9" * 40,
    b'"\\ud800"', b"\\u0000", b"\xff\xfe", b"\x00", b"\x1b[2J", b"../" * 4, b"[" * 40, b"{\"a\":" * 20, b"=", b"[[",
    b"\xff" * 8, b"\x00" * 8, (2**63).to_bytes(8, "little"), (2**31).to_bytes(4, "little"),
)  # fmt: skip
NAMES = ("", "x", "m", "kind", "schema", "\n")
SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.sampled_from([0, -1, 1, 2**31, 2**63, 10**40]),
    st.floats(),
    st.sampled_from(
        ["", "x", "0", "é", "\ud800", "..", "/etc/passwd", "\x1b[31m", "a\nb", "vulkan.mul_mm:1", "Q4_K", "accept"]
    ),
    st.sampled_from([[], {}, [[]], {"a": 1}]),
)


def sound(target: str) -> list[bytes]:
    """The kept corpus of a target."""
    return [path.read_bytes() for path in sorted((CORPUS / target).iterdir())]


@st.composite
def bytes_changed(draw: st.DrawFn, samples: Sequence[bytes]) -> bytes:
    """A sample with up to six places cut out, overwritten or filled in."""
    data = bytearray(draw(st.sampled_from(samples)))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(data)))
        gone = draw(st.sampled_from([0, 0, 1, 1, 2, 4, 8, 100]))
        new = draw(st.one_of(st.sampled_from(TOKENS), st.binary(max_size=4)))
        data[at : at + gone] = new
    return bytes(data[: draw(st.integers(0, len(data)))]) if draw(st.integers(0, 5)) == 0 else bytes(data)


@st.composite
def json_changed(draw: st.DrawFn, samples: Sequence[bytes]) -> bytes:
    """A sample's JSON lines, one value in one or two of them replaced, left out, or put under another name."""
    lines = draw(st.sampled_from(samples)).split(b"\n") if b"\n{" in samples[0] else [draw(st.sampled_from(samples))]
    values = [json.loads(line) for line in lines if line.strip()]
    for _ in range(draw(st.integers(1, 2))):
        _change(draw, values)
    return b"\n".join(json.dumps(value).encode("utf-8", "surrogatepass") for value in values) + b"\n"


def _change(draw: st.DrawFn, values: list[Any]) -> None:
    here: Any = values
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        key = draw(st.sampled_from(keys))
        inner = here[key]
        if isinstance(inner, dict | list) and inner and draw(st.integers(0, 7)):
            here = inner
            continue
        if isinstance(here, dict) and draw(st.integers(0, 4)) == 0:
            value = here.pop(key)
            if draw(st.booleans()):
                here[draw(st.sampled_from(NAMES))] = value
        else:
            here[key] = copy.deepcopy(draw(SCALARS))
        return
