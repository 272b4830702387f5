"""Activations in blocks: what integer kernels multiply must be what ggml's own quantizers write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gguf
import numpy as np
import pytest

from warptile import activations as act
from warptile.contracts.errors import UnusableInput

PAIRS: dict[str, tuple[Callable[..., Any], Callable[..., Any], int, int]] = {
    "Q8_0": (act.quantize_q8_0, act.dequantize_q8_0, 32, 34),
    "Q8_1": (act.quantize_q8_1, act.dequantize_q8_1, 32, 36),
    "D4": (act.quantize_q8_1_d4, act.dequantize_q8_1_d4, 128, 144),
    "DS4": (act.quantize_q8_1_ds4, act.dequantize_q8_1_ds4, 128, 144),
    "D2S6": (act.quantize_q8_1_d2s6, act.dequantize_q8_1_d2s6, 128, 144),
    "Q8_K": (act.quantize_q8_k, act.dequantize_q8_k, 256, 292),
}


def samples(m: int = 40, k: int = 768) -> np.ndarray:
    rng = np.random.default_rng(7)
    x = rng.standard_normal((m, k)) * 10.0 ** rng.uniform(-3, 2, (m, k // 128)).repeat(128, axis=1)
    x[0, :256] = 0
    return x.astype(np.float32)


@pytest.mark.parametrize("name", PAIRS)
def test_block_bytes_and_shapes(name: str) -> None:
    quantize, dequantize, block, nbytes = PAIRS[name]
    blocks = quantize(samples())
    assert blocks.dtype.itemsize == nbytes
    assert blocks.shape == (40, 768 // block)
    assert dequantize(blocks).shape == (40, 768)
    assert np.array_equal(quantize(samples()[0]), blocks[0])


@pytest.mark.parametrize("name", PAIRS)
def test_values_come_back_within_half_a_step(name: str) -> None:
    quantize, dequantize, _, _ = PAIRS[name]
    group = {"D2S6": 64, "Q8_K": 256}.get(name, 32)
    x = samples()
    top = np.abs(x).reshape(40, -1, group).max(axis=-1).repeat(group, axis=-1)
    # Half a step of top / 127; fp16 keeps a scale to 2^-11 of it (and 2^-25 absolutely, below its normals), times 127.
    bound = top / 127 * (0.5 + 1e-4) + 127 * np.maximum(top / 127 * 2.0**-11, 2.0**-25)
    assert np.all(np.abs(dequantize(quantize(x)) - x) <= bound)


@pytest.mark.parametrize("name", PAIRS)
def test_zeros_stay_zero(name: str) -> None:
    quantize, dequantize, _, _ = PAIRS[name]
    blocks = quantize(np.zeros((2, 256), dtype=np.float32))
    assert not dequantize(blocks).any()
    assert not blocks.view(np.uint8).any()


def test_q8_0_bytes_are_the_packages() -> None:
    x = samples()
    want = gguf.quants.quantize(x, gguf.GGMLQuantizationType.Q8_0)
    assert np.array_equal(act.quantize_q8_0(x).view(np.uint8).reshape(want.shape), want)


def test_q8_1_sum_is_scale_times_sum_of_codes() -> None:
    x = samples()
    blocks = act.quantize_q8_1(x)
    plain = act.quantize_q8_0(x)
    assert np.array_equal(blocks["q"], plain["q"])
    assert np.array_equal(blocks["d"], plain["d"])
    d = np.abs(x).reshape(40, -1, 32).max(axis=-1) / np.float32(127)
    want = (d * blocks["q"].astype(np.float32).sum(axis=-1)).astype(np.float16)
    assert np.array_equal(blocks["s"], want)


def test_d4_scale_is_one_over_the_inverse() -> None:
    x = samples()
    blocks = act.quantize_q8_1_d4(x)
    top = np.abs(x).reshape(40, -1, 4, 32).max(axis=-1)
    used = top > 0
    inverse = np.float32(127) / top[used]
    assert np.array_equal(blocks["d"][used], np.float32(1) / inverse)
    assert not blocks["d"][~used].any()
    assert np.abs(blocks["q"].astype(int)).reshape(40, -1, 4, 32).max(axis=-1)[used].tolist() == [127] * int(used.sum())
    head = blocks.view(np.uint8).reshape(40, -1, 144)[..., :16]
    assert np.array_equal(np.ascontiguousarray(head).view("<f4"), blocks["d"])


def test_ds4_and_d2s6_keep_partial_sums_of_the_values() -> None:
    x = samples()
    ds4 = act.quantize_q8_1_ds4(x)
    assert np.array_equal(ds4["q"], act.quantize_q8_1_d4(x)["q"])
    assert np.array_equal(ds4["ds"][..., 0], act.quantize_q8_1_d4(x)["d"].astype(np.float16))
    # fp32 sums in any order, then fp16: 2^-11 of the sum and the order's 32 * 2^-24 of the magnitudes.
    sums = x.astype(np.float64).reshape(40, -1, 4, 32).sum(axis=-1)
    magnitudes = np.abs(x).astype(np.float64).reshape(40, -1, 4, 32).sum(axis=-1)
    slack = np.abs(sums) * 2.0**-11 + magnitudes * 2.0**-19 + 2.0**-25
    assert np.all(np.abs(ds4["ds"][..., 1] - sums) <= slack)
    d2s6 = act.quantize_q8_1_d2s6(x)
    assert d2s6["d"].shape[-1] == 2
    sums = x.astype(np.float64).reshape(40, -1, 8, 16).sum(axis=-1)[..., :6]
    magnitudes = np.abs(x).astype(np.float64).reshape(40, -1, 8, 16).sum(axis=-1)[..., :6]
    assert np.all(np.abs(d2s6["s"] - sums) <= np.abs(sums) * 2.0**-11 + magnitudes * 2.0**-20 + 2.0**-25)


def test_q8_k_scale_sign_clamp_and_sums() -> None:
    x = np.zeros((1, 256), dtype=np.float32)
    x[0, :4] = [2.0, -2.0, 1.0, 0.5]
    block = act.quantize_q8_k(x)[0, 0]
    # The first value of largest magnitude is +2: iscale = -63.5; -63.5 and -31.75 round to even and nearest.
    assert block["d"] == np.float32(1) / np.float32(-63.5)
    assert block["q"][:4].tolist() == [-127, 127, -64, -32]
    assert block["sums"].tolist() == [-96, *[0] * 15]
    many = act.quantize_q8_k(samples())
    assert np.array_equal(many["sums"], many["q"].astype(int).reshape(40, 3, 16, 16).sum(axis=-1))


@pytest.mark.parametrize("name", PAIRS)
def test_bad_activations_are_refused(name: str) -> None:
    quantize, _, block, _ = PAIRS[name]
    for k in (0, block - 1, block + 16):
        with pytest.raises(UnusableInput, match=f"K = {k}"):
            quantize(np.zeros((2, k), dtype=np.float32))
    x = np.zeros((1, block), dtype=np.float32)
    x[0, 5] = np.nan
    with pytest.raises(UnusableInput, match="not finite"):
        quantize(x)


@pytest.mark.parametrize("name", ["Q8_0", "Q8_1", "DS4", "D2S6"])
def test_scales_beyond_fp16_are_refused(name: str) -> None:
    quantize, _, block, _ = PAIRS[name]
    with pytest.raises(UnusableInput, match="fp16"):
        quantize(np.full((1, block), 1e7, dtype=np.float32))
