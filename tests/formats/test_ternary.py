"""Ternary models: the formats the `gguf` package does not know, held to vectors and to the formats' own statements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.blocks import bits

from warptile import formats
from warptile.contracts.errors import UnusableInput

VECTORS = np.load(Path(__file__).parents[1] / "data" / "ternary.npz")
NEVER_ENCODED = [1, 20, 40, 60, 79, 99, 119, 138, 158, 178, 197, 217, 237]
PTQ1_0 = formats.by_name("PTQ1_0")
PQ2_0 = formats.by_name("PQ2_0")


def half(value: float) -> list[int]:
    return list(np.float16(value).tobytes())


@pytest.mark.parametrize("name", ["ptq1_0", "pq2_0"])
def test_vectors_decode_to_the_bit(name: str) -> None:
    decoded = formats.by_name(name.upper()).decode(VECTORS[f"{name}_blocks"])
    assert np.array_equal(bits(decoded), bits(VECTORS[f"{name}_values"]))


def test_vectors_encode_to_the_byte() -> None:
    assert PTQ1_0.encode is not None
    assert np.array_equal(PTQ1_0.encode(VECTORS["encode_input"]), VECTORS["ptq1_0_encoded"])


def digit(byte: int, n: int) -> int:
    return (((byte * 3**n) % 256) * 3) >> 8


def test_ptq1_0_every_byte_at_every_place_means_what_the_formula_says() -> None:
    blocks = np.zeros((256, 28), dtype=np.uint8)
    blocks[:, :26] = np.arange(256, dtype=np.uint8)[:, None] + np.arange(26, dtype=np.uint8)
    blocks[:, 26:] = half(1.0)
    want = np.empty((256, 128), dtype=np.float32)
    for e in range(128):
        if e < 80:
            byte, n = e % 16, e // 16
        elif e < 120:
            byte, n = 16 + (e - 80) % 8, (e - 80) // 8
        else:
            byte, n = 24 + (e - 120) % 2, (e - 120) // 2
        want[:, e] = [digit(int(b), n) - 1 for b in blocks[:, byte]]
    assert np.array_equal(PTQ1_0.decode(blocks), want)


@pytest.mark.parametrize(("value", "qs", "qh"), [(-1.0, 0, 0), (0.0, 128, 127), (1.0, 255, 253)])
def test_ptq1_0_landmark_bytes(value: float, qs: int, qh: int) -> None:
    values = np.full((1, 128), value, dtype=np.float32)
    assert PTQ1_0.encode is not None
    encoded = PTQ1_0.encode(values)
    assert set(encoded[0, :24]) == {qs}
    assert set(encoded[0, 24:26]) == {qh}
    assert list(encoded[0, 26:]) == half(abs(value))


def test_ptq1_0_encoder_writes_243_byte_values_and_no_other() -> None:
    rng = np.random.default_rng(0)
    assert PTQ1_0.encode is not None
    encoded = PTQ1_0.encode(rng.integers(-1, 2, (4096, 128)).astype(np.float32))
    assert sorted(set(range(256)) - set(encoded[:, :24].reshape(-1).tolist())) == NEVER_ENCODED


def test_pq2_0_and_q2_0_codes() -> None:
    for format in (PQ2_0, formats.by_name("Q2_0")):
        block = np.array([[*half(0.5), *([0b11100100] * (format.block_bytes - 2))]], dtype=np.uint8)
        want = np.tile(np.float32([-0.5, 0.0, 0.5, 1.0]), format.block_size // 4)
        assert np.array_equal(format.decode(block)[0], want)


def test_q1_0_bits() -> None:
    q1_0 = formats.by_name("Q1_0")
    assert q1_0.encode is None
    block = np.array([[*half(-0.25), 0b00000101, *([0] * 14), 0x80]], dtype=np.uint8)
    want = np.full(128, 0.25, dtype=np.float32)
    want[[0, 2, 127]] = -0.25
    assert np.array_equal(q1_0.decode(block)[0], want)


@pytest.mark.parametrize("name", ["PTQ1_0", "PQ2_0", "Q2_0", "TQ1_0", "TQ2_0"])
def test_encoding_keeps_values_that_are_already_ternary(name: str) -> None:
    format = formats.by_name(name)
    assert format.encode is not None
    rng = np.random.default_rng(5)
    values = rng.integers(-1, 2, (50, format.block_size)).astype(np.float32) * np.float32(0.375)
    values[0] = 0
    values[1:, 0] = 0.375
    assert np.array_equal(format.decode(format.encode(values)), values)


@pytest.mark.parametrize("name", ["PTQ1_0", "PQ2_0", "Q2_0"])
def test_encoding_rounds_halves_away_from_zero_with_the_scale_before_fp16(name: str) -> None:
    format = formats.by_name(name)
    assert format.encode is not None
    d = np.float32(1.0004)  # 1.0 in fp16: the thresholds must be those of 1.0004
    values = np.zeros((1, format.block_size), dtype=np.float32)
    below = np.nextafter(d / 2, np.float32(0), dtype=np.float32)
    values[0, :5] = [d, d / 2, -d / 2, below, -below]
    assert format.decode(format.encode(values))[0, :6].tolist() == [1.0, 1.0, -1.0, 0.0, 0.0, 0.0]


def test_encoders_refuse_what_they_cannot_hold() -> None:
    assert PTQ1_0.encode is not None
    values = np.zeros((2, 128), dtype=np.float32)
    with pytest.raises(UnusableInput, match=r"f32\[n, 128\]"):
        PTQ1_0.encode(values[:, :64])
    values[1, 3] = np.inf
    with pytest.raises(UnusableInput, match="not finite"):
        PTQ1_0.encode(values)
    values[1, 3] = 70000
    with pytest.raises(UnusableInput, match="fp16"):
        PTQ1_0.encode(values)


def test_ternary_vectors_cover_bytes_no_encoder_writes() -> None:
    assert set(NEVER_ENCODED) <= set(VECTORS["ptq1_0_blocks"][:, :26].reshape(-1).tolist())
