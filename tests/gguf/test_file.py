"""What a user sees of a model that can be read."""

from __future__ import annotations

import struct
from pathlib import Path

import gguf
import numpy as np
import pytest
from support.gguf_bytes import RawTensor, entry, gguf_bytes, random_bytes, string
from support.models import smollm2

from warptile.contracts.errors import UnusableInput
from warptile.gguf import TENSOR_TYPES, open_gguf, type_by_name, type_name


@pytest.fixture(scope="module")
def reference() -> gguf.GGUFReader:
    return gguf.GGUFReader(smollm2())


def test_real_model_directory_equals_the_gguf_packages(reference: gguf.GGUFReader) -> None:
    ours = open_gguf(smollm2())
    assert [t.name for t in reference.tensors] == list(ours.tensors)
    for theirs in reference.tensors:
        info = ours.tensors[theirs.name]
        assert info.shape == tuple(int(d) for d in theirs.shape)
        assert (info.type_id, info.type_name) == (int(theirs.tensor_type), theirs.tensor_type.name)
        assert (info.offset, info.nbytes) == (int(theirs.data_offset), int(theirs.n_bytes))


def test_real_model_blocks_are_the_files_bytes(reference: gguf.GGUFReader) -> None:
    ours = open_gguf(smollm2())
    for theirs in reference.tensors[:8]:
        blocks = ours.blocks(theirs.name)
        assert not blocks.flags.writeable
        assert blocks.tobytes() == theirs.data.tobytes()
    assert ours.blocks("blk.0.ffn_down.weight").shape == (576, 1536 // 32 * 20)
    assert ours.blocks("blk.0.attn_norm.weight").shape == (1, 576 * 4)


def test_real_model_metadata_equals_the_gguf_packages(reference: gguf.GGUFReader) -> None:
    ours = open_gguf(smollm2()).metadata
    theirs = {key: field for key, field in reference.fields.items() if not key.startswith("GGUF.")}
    assert list(theirs) == list(ours)
    for key in ("general.architecture", "llama.attention.head_count_kv", "llama.rope.freq_base", "general.languages"):
        assert ours[key] == theirs[key].contents()
    tokens = ours["tokenizer.ggml.tokens"]
    assert isinstance(tokens, list)
    assert tokens[:300] == [
        str(bytes(theirs["tokenizer.ggml.tokens"].parts[i]), "utf-8")
        for i in theirs["tokenizer.ggml.tokens"].data[:300]
    ]


def test_block_sizes_are_the_gguf_packages() -> None:
    activations = {gguf.GGMLQuantizationType.Q8_1, gguf.GGMLQuantizationType.Q8_K}
    for kind, (size, nbytes) in gguf.GGML_QUANT_SIZES.items():
        if kind not in activations:
            ours = TENSOR_TYPES[int(kind)]
            assert (ours.name, ours.block_size, ours.block_bytes) == (kind.name, size, nbytes)


@pytest.mark.parametrize(
    ("type_id", "name", "block_size", "block_bytes"),
    [(41, "Q1_0", 128, 18), (42, "Q2_0", 64, 18), (142, "PQ2_0", 128, 34), (143, "PTQ1_0", 128, 28)],
)
def test_ternary_types_open(tmp_path: Path, type_id: int, name: str, block_size: int, block_bytes: int) -> None:
    raw = random_bytes(3 * 2 * block_bytes)
    path = tmp_path / "ternary.gguf"
    path.write_bytes(gguf_bytes(tensors=[RawTensor("w.weight", (2 * block_size, 3), type_id, raw)]))
    model = open_gguf(path)
    assert model.tensors["w.weight"].type_name == name
    assert model.blocks("w.weight").shape == (3, 2 * block_bytes)
    assert model.blocks("w.weight").tobytes() == raw
    kind = type_by_name(name)
    assert kind is not None
    assert kind.type_id == type_id


def test_an_unknown_type_is_listed_and_only_its_data_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    tensors = [RawTensor("new.weight", (7, 2), 999, bytes(64)), RawTensor("w.weight", (32, 1), 2, random_bytes(18))]
    path.write_bytes(gguf_bytes(tensors=tensors))
    model = open_gguf(path)
    info = model.tensors["new.weight"]
    assert (info.type_name, info.nbytes, info.known) == ("type 999", 64, False)
    assert type_name(999) == "type 999"
    with pytest.raises(UnusableInput, match=r"new\.weight has type 999, whose block size is unknown"):
        model.blocks("new.weight")
    assert model.blocks("w.weight").tobytes() == random_bytes(18)


def test_expert_tensors_have_experts_outermost(tmp_path: Path) -> None:
    raw = random_bytes(4 * 3 * 2 * 34)
    path = tmp_path / "moe.gguf"
    path.write_bytes(gguf_bytes(tensors=[RawTensor("e.weight", (64, 3, 4), 8, raw)]))
    blocks = open_gguf(path).blocks("e.weight")
    assert blocks.shape == (4, 3, 2 * 34)
    assert blocks[2, 1].tobytes() == raw[(2 * 3 + 1) * 68 :][:68]


def test_every_value_type_reads_back(tmp_path: Path) -> None:
    written = {
        "u8": 255, "i8": -128, "u16": 65535, "i16": -32768, "u32": 2**32 - 1, "i32": -(2**31), "f32": 0.5,
        "bool": True, "u64": 2**64 - 1, "i64": -(2**63), "f64": 0.1, "str": "héllo", "strings": ["a", "", "ü"],
    }  # fmt: skip
    entries = [entry(f"k.{kind}", kind, content) for kind, content in written.items()]
    entries += [entry("k.empty", "u32[]", []), entry("k.numbers", "i16[]", [-1, 2]), entry("k.flags", "bool[]", [1, 0])]
    entries += [string("k.bytes") + struct.pack("<I", 8) + string(b"\xff\xfe")]
    path = tmp_path / "values.gguf"
    path.write_bytes(gguf_bytes(entries, version=2))
    found = open_gguf(path).metadata
    assert {key: found[f"k.{key}"] for key in written} == written
    assert np.array_equal(found["k.numbers"], [-1, 2])
    assert np.array_equal(found["k.flags"], [True, False])
    assert np.size(found["k.empty"]) == 0
    assert found["k.bytes"] == r"\xff\xfe"


def test_alignment_of_the_file_is_followed(tmp_path: Path) -> None:
    raw = [random_bytes(18, seed) for seed in (1, 2)]
    tensors = [RawTensor(f"w{i}.weight", (32, 1), 2, data) for i, data in enumerate(raw)]
    path = tmp_path / "aligned.gguf"
    path.write_bytes(gguf_bytes([entry("general.alignment", "u32", 256)], tensors, alignment=256))
    model = open_gguf(path)
    assert [model.blocks(t.name).tobytes() for t in tensors] == raw
    assert all(info.offset % 256 == 0 for info in model.tensors.values())


def test_a_missing_tensor_is_named(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf_bytes())
    with pytest.raises(UnusableInput, match=r"no tensor is named nope\\n"):
        open_gguf(path).blocks("nope\n")
