"""A model's weight from file to planes: what a user does with one tensor."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
from support.blocks import bits, random_blocks
from support.gguf_bytes import RawTensor, gguf_bytes
from support.models import smollm2

from warptile import formats
from warptile.contracts.errors import UnusableInput
from warptile.gguf import open_gguf
from warptile.layouts import unpack
from warptile.weights import QuantTensor


def test_a_real_tensor_dequantizes_as_the_gguf_package_does() -> None:
    name = "blk.3.ffn_down.weight"
    tensor = QuantTensor.from_gguf(smollm2(), name)
    want = gguf.quants.dequantize(open_gguf(smollm2()).blocks(name), gguf.GGMLQuantizationType(tensor.format.gguf_id))
    assert tensor.shape == want.shape
    assert np.array_equal(bits(tensor.dequantize()), bits(want))
    packed = tensor.pack(max_bytes=256 << 10)
    assert len(packed.slices) > 1
    assert np.array_equal(unpack(packed), tensor.blocks)


def test_a_ternary_file_opens_although_the_gguf_package_refuses_it(tmp_path: Path) -> None:
    ptq1_0 = formats.by_name("PTQ1_0")
    blocks = random_blocks(ptq1_0, 6 * 3)
    path = tmp_path / "ternary.gguf"
    path.write_bytes(gguf_bytes(tensors=[RawTensor("w", (384, 6), 143, blocks.tobytes())]))
    with pytest.raises(ValueError, match="143"):
        gguf.GGUFReader(path)
    tensor = QuantTensor.from_gguf(path, "w")
    assert tensor.shape == (6, 384)
    assert np.array_equal(bits(tensor.dequantize()), bits(ptq1_0.decode(blocks).reshape(6, 384)))


def test_experts_are_rows_one_after_another(tmp_path: Path) -> None:
    q4_0 = formats.by_name("Q4_0")
    blocks = random_blocks(q4_0, 3 * 4 * 2)
    path = tmp_path / "experts.gguf"
    path.write_bytes(gguf_bytes(tensors=[RawTensor("w", (64, 4, 3), 2, blocks.tobytes())]))
    tensor = QuantTensor.from_gguf(path, "w")
    assert tensor.shape == (12, 64)
    assert np.array_equal(tensor.blocks.reshape(-1), blocks.reshape(-1))


def test_types_without_a_format_are_named() -> None:
    with pytest.raises(UnusableInput, match=r"type id 0.*12 Q4_K"):
        QuantTensor.from_gguf(smollm2(), "blk.0.attn_norm.weight")
    with pytest.raises(UnusableInput, match="no_such"):
        QuantTensor.from_gguf(smollm2(), "no_such")


def test_shapes_that_do_not_match_the_bytes_are_refused() -> None:
    q4_k = formats.by_name("Q4_K")
    blocks = random_blocks(q4_k, 4)
    assert QuantTensor.from_blocks(q4_k, blocks, (2, 512)).shape == (2, 512)
    with pytest.raises(UnusableInput, match="got 576"):
        QuantTensor.from_blocks(q4_k, blocks, (3, 512))
    with pytest.raises(UnusableInput, match="K = 320"):
        QuantTensor.from_blocks(q4_k, blocks, (2, 320))
    with pytest.raises(UnusableInput, match="rows and columns"):
        QuantTensor.from_blocks(q4_k, blocks, (1024,))
