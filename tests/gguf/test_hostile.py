"""Files that are damaged or hostile: one line that says what and where, in bounded time and memory."""

from __future__ import annotations

import os
import struct
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.gguf_bytes import RawTensor, entry, gguf_bytes, random_bytes, string, value

from warptile.contracts.errors import UnusableInput
from warptile.gguf import open_gguf
from warptile.gguf.header import read_header

W = RawTensor("w.weight", (64, 2), 2, random_bytes(72))
BILLION = 10**9


def small_model() -> bytes:
    entries = [
        entry("general.architecture", "str", "llama"),
        entry("general.alignment", "u32", 32),
        entry("llama.rope.freq_base", "f32", 1e5),
        entry("tokenizer.ggml.tokens", "strings", ["<s>", "a", "é"]),
        entry("tokenizer.ggml.scores", "f32[]", [0.0, 1.0, 2.0]),
        entry("tokenizer.ggml.add_bos_token", "bool", True),
    ]
    tensors = [W, RawTensor("norm.weight", (5,), 0, random_bytes(20)), RawTensor("x.weight", (3, 2), 999, bytes(64))]
    return gguf_bytes(entries, tensors)


def one(shape: tuple[int, ...], type_id: int, data: bytes = b"", offset: int | None = None, name: str = "w") -> bytes:
    return gguf_bytes(tensors=[RawTensor(name, shape, type_id, data, offset)])


def two(offset: int) -> bytes:
    return gguf_bytes(tensors=[W, RawTensor("v", (32, 1), 2, bytes(18), offset)])


def array_claim(kind: int, count: int) -> bytes:
    return string("k") + struct.pack("<IIQ", 9, kind, count)


def nested(depth: int) -> bytes:
    return string("k") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * depth + struct.pack("<IQ", 4, 0)


BAD = {
    "empty": (b"", "not a GGUF file"),
    "text": (b"not a model at all, only text", "byte 0: not a GGUF file"),
    "magic only": (b"GGUF", "byte 4: the version needs 4 bytes, 0 are left"),
    "version 1": (gguf_bytes(version=1), "GGUF version 1"),
    "version 0": (gguf_bytes(version=0), "GGUF version 0"),
    "version 4": (gguf_bytes(version=4), "GGUF version 4"),
    "big-endian": (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), r"big-endian GGUF \(version 3\)"),
    "10^9 entries": (gguf_bytes(n_entries=BILLION), "claim of 1000000000 metadata entries and 0 tensors needs"),
    "10^9 tensors": (gguf_bytes([entry("a", "u8", 1)], n_tensors=BILLION), "and 1000000000 tensors needs"),
    "2^64 - 1 tensors": (gguf_bytes(n_tensors=2**64 - 1), "and 18446744073709551615 tensors needs"),
    "10^9 strings": (gguf_bytes([array_claim(8, BILLION)]), "1000000000 strings, needs 8000000000 bytes"),
    "10^9 numbers": (gguf_bytes([array_claim(4, BILLION)]), "1000000000 elements, needs 4000000000 bytes"),
    "2^64 - 1 bytes": (gguf_bytes([array_claim(0, 2**64 - 1)]), "elements, needs 18446744073709551615 bytes"),
    "long key": (gguf_bytes([struct.pack("<Q", 2**63) + bytes(5)]), "byte 32: key 0 needs 9223372036854775808 bytes"),
    "long string": (gguf_bytes([string("k") + struct.pack("<IQ", 8, BILLION)]), "value of key k needs 1000000000"),
    "long element": (gguf_bytes([array_claim(8, 1) + struct.pack("<Q", BILLION)]), "element 0 of the value of key k"),
    "array of arrays": (gguf_bytes([nested(1)]), "byte 37: the value of key k is an array of arrays"),
    "deep arrays": (gguf_bytes([nested(100_000)]), "array of arrays"),
    "value type": (gguf_bytes([string("k") + struct.pack("<IQ", 77, 0)]), "key k has unknown value type 77"),
    "element type": (gguf_bytes([array_claim(13, 0)]), "key k has unknown element type 13"),
    "boolean": (gguf_bytes([entry("k", "bool", 2)]), "boolean of value 2"),
    "booleans": (gguf_bytes([entry("k", "bool[]", [1, 3])]), "boolean that is neither 0 nor 1"),
    "duplicate key": (gguf_bytes([entry("k", "u8", 1)] * 2), "key k appears twice"),
    "duplicate tensor": (gguf_bytes(tensors=[W, W]), r"tensor w\.weight appears twice"),
    "alignment 0": (gguf_bytes([entry("general.alignment", "u32", 0)]), "general.alignment is 0, not a power of two"),
    "alignment 24": (gguf_bytes([entry("general.alignment", "u32", 24)]), "general.alignment is 24, not a power"),
    "alignment text": (gguf_bytes([entry("general.alignment", "str", "32")]), "general.alignment is not a number"),
    "alignment true": (gguf_bytes([entry("general.alignment", "bool", 1)]), "general.alignment is"),
    "alignment 2^31": (gguf_bytes([entry("general.alignment", "u32", 2**31)], [W]), r"w\.weight ends at byte 21474"),
    "no dimensions": (one((), 0, bytes(8)), "tensor w has 0 dimensions, not 1 to 4"),
    "nine dimensions": (one((1,) * 9, 0), "tensor w has 9 dimensions"),
    "zero size": (one((32, 0), 2), r"tensor w has no elements, its shape is \[32, 0\]"),
    "ragged k": (one((33, 2), 2, bytes(99)), "k = 33 is not a multiple of Q4_0's"),
    "K-quant k": (one((640, 2), 12, bytes(999)), "k = 640 is not a multiple of Q4_K"),
    "huge shape": (one((2**63, 2**63), 0), "tensor w ends at byte 340282366920938463"),
    "past the end": (one((32, 1), 2, bytes(18), 2**40), "tensor w ends at byte 10995"),
    "offset unaligned": (one((32,), 2, bytes(40), offset=8), "offset 8 is not a multiple of"),
    "unknown past end": (one((4,), 999, bytes(4), 64), "tensor w ends at byte"),
    "unknown no data": (one((4,), 999), "tensor w ends at byte"),
    "overlap": (two(64), r"tensor v overlaps tensor w\.weight"),
    "same place": (two(0), "overlaps"),
    "name escaped": (one((0,), 0, name="w\n\x1b[31m\u202e"), r"tensor w\\n\\x1b\[31m\\u202e has no"),
    "name cut": (one((0,), 0, name="w" * 5000), r"tensor w{93}\.\.\. has no elements"),
}  # fmt: skip


@pytest.mark.parametrize(("raw", "message"), BAD.values(), ids=BAD.keys())
def test_bad_files_are_refused_with_one_line(tmp_path: Path, raw: bytes, message: str) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(raw)
    with pytest.raises(UnusableInput, match=message) as caught:
        open_gguf(path)
    line = str(caught.value)
    assert line.startswith(f"{path}: byte ")
    assert line.isprintable()


def test_truncation_at_every_byte(tmp_path: Path) -> None:
    whole = small_model()
    end_of_x = len(whole)
    for length in range(len(whole)):
        try:
            header = read_header(memoryview(whole[:length]), "model")
        except UnusableInput as error:
            assert str(error).startswith("model: byte ")  # noqa: PT017
            continue
        # Only the tensor of unknown size may be cut unnoticed: nothing tells how long it is.
        assert header.tensors["x.weight"].nbytes == 64 - (end_of_x - length) > 0
    assert len(read_header(memoryview(whole), "model").tensors) == 3


@pytest.mark.parametrize("kind", [0, 4, 8])
def test_claims_allocate_nothing(kind: int) -> None:
    raw = gguf_bytes([array_claim(kind, BILLION), bytes(4096)], n_entries=1)
    tracemalloc.start()
    with pytest.raises(UnusableInput):
        read_header(memoryview(raw), "model")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


def test_a_sparse_header_is_cut_off(tmp_path: Path) -> None:
    """A file of a terabyte that occupies one page cannot make the reader walk through a terabyte of nothing."""
    path = tmp_path / "sparse.gguf"
    path.write_bytes(gguf_bytes([array_claim(8, 10**11)]))
    os.truncate(path, 1 << 40)
    with pytest.raises(UnusableInput, match="past the 268435456 bytes a header may have"):
        open_gguf(path)


@pytest.mark.parametrize("make", ["folder", "absent", "pipe", "nul"])
def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path, make: str) -> None:
    path = tmp_path / "thing\n.gguf"
    if make == "folder":
        path.mkdir()
    elif make == "pipe":
        os.mkfifo(path)
    elif make == "nul":
        path = Path("a\0b")
    with pytest.raises(UnusableInput) as caught:
        open_gguf(path)
    assert str(caught.value).isprintable()


MODEL = small_model()


def survives(raw: bytes) -> None:
    """Reads, or is refused with one line; what was read lies inside the bytes."""
    try:
        header = read_header(memoryview(raw), "fuzz")
    except UnusableInput as error:
        assert str(error).isprintable()  # noqa: PT017
        return
    for info in header.tensors.values():
        assert info.nbytes > 0
        assert info.offset + info.nbytes <= len(raw)


@settings(max_examples=400, deadline=1000, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.integers(0, len(MODEL) - 1), st.integers(0, 255)), min_size=1, max_size=8),
    st.integers(0, len(MODEL)),
)
def test_mutated_bytes(changes: list[tuple[int, int]], length: int) -> None:
    raw = bytearray(MODEL)
    for at, byte in changes:
        raw[at] = byte
    survives(bytes(raw[:length]))
    survives(bytes(raw))


HOSTILE = st.sampled_from([0, 1, 2, 3, 31, 32, 33, 255, 2**31 - 1, 2**31, 2**32 - 1, BILLION, 2**63, 2**64 - 1])


@settings(max_examples=300, deadline=1000, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(8, len(MODEL) - 8), HOSTILE)
def test_hostile_counts_anywhere(at: int, count: int) -> None:
    survives(MODEL[:at] + struct.pack("<Q", count) + MODEL[at + 8 :])


@settings(max_examples=300, deadline=1000, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_structured_headers(data: st.DataObject) -> None:
    kinds = ["u8", "u32", "i64", "bool", "str", "strings", "u16[]"]
    content = {"str": "x", "strings": ["x", "y"], "u16[]": [1, 2, 3]}
    entries = [
        entry(data.draw(st.text(max_size=4)), kind, content.get(kind, 1))
        for kind in data.draw(st.lists(st.sampled_from(kinds), max_size=4))
    ]
    if data.draw(st.booleans()):
        entries.append(string("general.alignment") + value("u32", data.draw(st.integers(0, 2**32 - 1))))
    tensors = [
        RawTensor(
            data.draw(st.text(max_size=4)),
            tuple(data.draw(st.lists(HOSTILE, max_size=5))),
            data.draw(st.sampled_from([0, 2, 8, 12, 42, 143, 999, 2**32 - 1])),
            bytes(data.draw(st.integers(0, 300))),
            data.draw(st.one_of(st.none(), HOSTILE)),
        )
        for _ in range(data.draw(st.integers(0, 3)))
    ]
    survives(gguf_bytes(entries, tensors, n_tensors=data.draw(st.one_of(st.none(), HOSTILE))))
