"""What register decoders hand to the assembler, on numpy: a wrong bit here is a wrong weight on a card alone."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.ptx import plain, run

pytest.importorskip("triton")

from warptile.layouts.triton import lane_decode, lane_six, scaled_pairs


def halves(low: NDArray[np.float16], high: NDArray[np.float16]) -> NDArray[np.uint32]:
    return np.stack([low, high], axis=1).view(np.uint32).reshape(-1)


def test_six_bit_codes_come_out_in_order() -> None:
    """Every nibble and every high pair of a word meets its own, in the pair's own half."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 64, (32, 8, 2), dtype=np.uint32)  # lane, slot, half
    codes[0], codes[1] = 0, 63
    words = np.zeros((3, 32), np.uint32)
    for slot in range(8):
        for half in range(2):
            words[slot // 4] |= (codes[:, slot, half] & 15) << np.uint32(4 * (slot % 4) + 16 * half)
            words[2] |= (codes[:, slot, half] >> 4) << np.uint32(2 * slot + 16 * half)
    found = run(plain(lane_six.six_text)(), {8: words[0], 9: words[1], 10: words[2]})
    for slot in range(8):
        assert (found[slot] == codes[:, slot, 0] | codes[:, slot, 1] << 16).all(), slot


@pytest.mark.parametrize("lane", range(4))
def test_eight_bit_scales_are_rounded_once(lane: int) -> None:
    """Lane g of a quad takes groups g and g + 4 times what their superblock is multiplied by; a scale of zero takes
    even the largest to zero."""
    rng = np.random.default_rng(lane)
    scales = rng.integers(-128, 128, (32, 8)).astype(np.int8)
    scales[0], scales[1], scales[2] = 0, -128, 127
    times = np.float16(rng.uniform(2**6, 2**7, 32))
    times[0], times[3] = np.float16(65504), np.float16(-1.5)
    words = scales.view("<u4")
    pick = np.full(32, lane * 0x1111 + 0x4400, np.uint32)
    given = {1: words[:, 0].copy(), 2: words[:, 1].copy(), 3: pick, 4: halves(times, times)}
    found = run(plain(scaled_pairs.eight_bit_scales)(), given)[0].view(np.float16).reshape(32, 2)
    for half in range(2):
        want = scales[:, lane + 4 * half].astype(np.float64) * times.astype(np.float64)
        assert (found[:, half] == want.astype(np.float16)).all()


@pytest.mark.parametrize("half", [0, 1])
def test_codes_are_multiplied_by_their_own_half(half: int) -> None:
    """Subnormal codes times a scale plus a shift, both of the half that is asked for."""
    rng = np.random.default_rng(half)
    codes = rng.integers(0, 64, (32, 2)).astype(np.uint16)
    pairs = codes.view(np.uint32).reshape(32)
    scale = np.float16(rng.uniform(-(2**15), 2**15, (32, 2)))
    shift = np.float16(scale.astype(np.float64) * -(2.0**-19))
    given = {1: pairs, 2: halves(scale[:, 0], scale[:, 1]), 3: halves(shift[:, 0], shift[:, 1])}
    found = run(plain(scaled_pairs.half_multiply_add)(half, "f16x2", False), given)[0].view(np.float16).reshape(32, 2)
    want = codes * 2.0**-24 * scale[:, half, None].astype(np.float64) + shift[:, half, None].astype(np.float64)
    assert (found == want.astype(np.float16)).all()


def test_powers_of_two_as_pairs() -> None:
    """The shift's part of a scale is exact in fp16; what is not is refused."""
    both = plain(scaled_pairs.both_halves)
    assert both(0.0625, "f16x2") & 0xFFFFFFFF == 0x2C002C00
    assert both(-32.0 / 2**24, "f16x2") & 0xFFFFFFFF == 0x80208020
    assert both(-32.0 * 2.0**-133, "bf16x2") & 0xFFFFFFFF == 0x80208020
    with pytest.raises(ValueError, match="no number of f16x2"):
        both(0.1, "f16x2")


@pytest.mark.parametrize("digit", range(5))
def test_digits_of_base_3_bytes(digit: int) -> None:
    """Of all pairs of bytes, each half for itself: what the lower takes must not be borrowed from the upper."""
    low, high = (found.reshape(-1) for found in np.meshgrid(np.arange(256), np.arange(256)))
    found = plain(lane_decode.digit_pairs)((low | high << 16).astype(np.int32), np.int32(3**digit)).view(np.uint32)
    for half, bytes_ in ((found & 0xFFFF, low), (found >> 16, high)):
        assert (half == 256 * (3 * (bytes_ * 3**digit % 256) // 256)).all()
