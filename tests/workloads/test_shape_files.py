"""Shape files: what ships says what it should, what is malformed is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.gguf_bytes import RawTensor, gguf_bytes
from support.models import smollm2

from warptile.contracts.errors import UnusableInput
from warptile.contracts.problem import Problem
from warptile.workloads import from_shapes, load, shape_names

ROW = '[[matmul]]\nformat = "Q4_K"\nn = 8\nk = 256\n'


def test_what_ships() -> None:
    assert shape_names() == (
        "gemma-3-270m",
        "llama-8b",
        "llama-8b-joined",
        "qwen3-30b-a3b",
        "rdna4-six",
        "smollm2-135m",
        "ternary-27b",
    )


def test_llama_8b_is_q4_k_m() -> None:
    rows = from_shapes("llama-8b").rows
    # Q4_K_M of 32 layers: attn_v and ffn_down keep Q6_K in layers 0-3, 28-31 and every third between.
    six = {(r.n, r.k): r.times for r in rows if r.format == "Q6_K"}
    assert six == {(1024, 4096): 16, (4096, 14336): 16, (128256, 4096): 1}
    assert sum(r.times for r in rows) == 32 * 7 + 1
    elements = sum(r.times * r.n * r.k for r in rows)
    assert elements == 32 * (2 * 4096**2 + 2 * 1024 * 4096 + 3 * 4096 * 14336) + 128256 * 4096


def test_gemma_counts() -> None:
    rows = from_shapes("gemma-3-270m").rows
    assert sum(r.times for r in rows) == 18 * 7 + 1
    assert {r.format for r in rows} == {"Q8_0", "Q5_0", "Q4_K", "Q6_K"}
    assert next(r.nbytes for r in rows if r.role == "output") == 178257920
    q4_k = sum(r.nbytes for r in rows if r.format == "Q4_K") / sum(r.nbytes for r in rows)
    assert 0.04 < q4_k < 0.06


def test_rdna4_six_runs_at_its_own_m() -> None:
    problems = from_shapes("rdna4-six").problems(512)
    assert len(problems) == 10
    assert {(p.m, p.n, p.k) for p in problems} == {
        (128, 3072, 2048), (128, 12288, 2048), (128, 2048, 6144), (132, 12288, 2048), (1, 3072, 2048)
    }  # fmt: skip
    assert {p.format for p in problems} == {"Q4_K", "Q6_K"}


def test_ternary_27b() -> None:
    rows = from_shapes("ternary-27b").rows
    assert {r.format for r in rows} == {"PTQ1_0"}
    assert sum(r.times * r.n * r.k for r in rows) == pytest.approx(26.9e9, rel=0.01)
    assert sum(r.times for r in rows) == 402
    assert from_shapes("ternary-27b").problems(64)[-1] == Problem("PTQ1_0", 248320, 5120, 1, count=2)


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(ROW + 'role = "experts"\nexperts = 8\ntop_k = 2\ntensors = ["up", "gate"]\n' + ROW + "m = 7\n")
    found = from_shapes(path)
    assert (found.name, found.source) == ("mine", str(path))
    assert found.problems(16) == (
        Problem("Q4_K", 8, 256, 16, experts=8, top_k=2, count=2),
        Problem("Q4_K", 8, 256, 7, count=1),
    )
    assert [r.nbytes for r in found.rows] == [2 * 8 * 8 * 144, 8 * 144]


BAD = {
    "empty": ("", r"no \[\[matmul\]\] entries"),
    "not TOML": ("[[matmul", r"bad\.toml: not TOML: "),
    "other table": ("[matmul]\nn = 1", r"no \[\[matmul\]\] entries"),
    "a list": ("matmul = [1, 2]", r"no \[\[matmul\]\] entries"),
    "unknown top key": (ROW.replace("[[matmul]]", "nane = 1\n[[matmul]]"), "unknown key nane"),
    "unknown key": (ROW + "rows = 3", r"\[\[matmul\]\] 1: unknown key rows; known are"),
    "second entry": (ROW + "[[matmul]]\nn = 8\nk = 256", r"\[\[matmul\]\] 2: format is missing"),
    "no k": (ROW.replace("k = 256", ""), "k is missing"),
    "text n": (ROW.replace("n = 8", 'n = "8\\u001b[31m"'), r"n = 8\\x1b\[31m is not a whole number"),
    "float n": (ROW.replace("n = 8", "n = 8.0"), "n = 8.0 is not a whole number"),
    "true n": (ROW.replace("n = 8", "n = true"), "n = True is not a whole number"),
    "zero n": (ROW.replace("n = 8", "n = 0"), "n = 0 is not a whole number from 1"),
    "huge n": (ROW.replace("n = 8", f"n = {2**31}"), "n = 2147483648 is not a whole number"),
    "negative m": (ROW + "m = -1", "m = -1 is not a whole number"),
    "format": (ROW.replace("Q4_K", "Q4_X"), "format Q4_X is unknown; known are .*Q4_K"),
    "dense format": (ROW.replace("Q4_K", "F16"), "format F16 is unknown"),
    "format number": (ROW.replace('"Q4_K"', "12"), "format 12 is unknown"),
    "format list": (ROW.replace('"Q4_K"', '["Q4_K"]'), "format .* is unknown"),
    "ragged k": (ROW.replace("256", "640"), "k = 640 is not a multiple of Q4_K's block of 256"),
    "role": (ROW + 'role = "router"', "role router is none of linear, output, experts"),
    "experts alone": (ROW + "experts = 8", "role linear does not go with experts = 8"),
    "role alone": (ROW + 'role = "experts"', "role experts does not go with experts = 1"),
    "top_k": (ROW + 'role = "experts"\nexperts = 2\ntop_k = 3', "does not go with experts = 2, top_k = 3"),
    "tensors": (ROW + "tensors = [1]", "tensors is not a list of names"),
    "name": ("name = 3\n" + ROW, "name is not text"),
    "deep": ("a = " + "[" * 20_000 + "]" * 20_000, "nested too deeply|not TOML"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD.keys())
def test_malformed_shape_files_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(UnusableInput, match=message) as caught:
        from_shapes(path)
    line = str(caught.value)
    assert line.startswith(f"{path}: ")
    assert line.isprintable()


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, tail: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(ROW.encode() + tail)
    try:
        from_shapes(path)
    except UnusableInput as error:
        assert str(error).isprintable()  # noqa: PT017


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match=r"none\.toml: no such file"):
        from_shapes(tmp_path / "none.toml")
    with pytest.raises(UnusableInput, match="no such file"):
        from_shapes(Path("a\0b.toml"))
    large = tmp_path / "large.toml"
    large.write_bytes(b"#" * (1 << 21))
    with pytest.raises(UnusableInput, match="larger than the 1048576 bytes"):
        from_shapes(large)
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(UnusableInput, match="not UTF-8 at byte 0"):
        from_shapes(binary)


def test_load_tells_models_from_shapes(tmp_path: Path) -> None:
    assert load(str(smollm2())).rows[0].n == 576
    assert load("llama-8b").name == "Llama 3 8B"
    own = tmp_path / "Mine.TOML"
    own.write_text(ROW)
    assert load(str(own)).name == "Mine"
    blob = tmp_path / "sha256-0123"
    blob.write_bytes(gguf_bytes(tensors=[RawTensor("a.weight", (32, 1), 2, bytes(18))]))
    assert load(blob).rows[0].n == 1


@pytest.mark.parametrize("name", ["llama-9b", "nothing/here", "a\0b", "x\ny", "."])
def test_load_says_what_there_is(name: str) -> None:
    with pytest.raises(UnusableInput, match=r"neither a \.gguf model, a \.toml shape file, nor .*llama-8b") as caught:
        load(name)
    assert str(caught.value).isprintable()
