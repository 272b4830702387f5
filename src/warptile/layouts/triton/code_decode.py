"""Codes of a tile in Triton: from words to whole numbers, and to what they stand for before scaling.

`L`, `row`, `at` and R as in `decode`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from warptile.layouts.triton.plane_decode import MAGIC, MAGIC_BITS, load_plane, load_words


@triton.jit
def bit_pairs(W, plane, row, at, rows, R: tl.constexpr, CHUNKS: tl.constexpr, B: tl.constexpr):
    """Codes of a plane of B bits, i32[R, 4, 4 CHUNKS]: e = 0 in the low half, e = 1 in the high half."""
    BITS: tl.constexpr = 8 * B * CHUNKS if 8 * B * CHUNKS < 32 else 32
    HALF: tl.constexpr = BITS // 2
    SLOTS: tl.constexpr = HALF // B
    WORDS: tl.constexpr = 4 * CHUNKS // SLOTS
    words = load_words(W, plane, row, at, rows, BITS, WORDS, R)[:, :, :, None]
    shift = (tl.arange(0, SLOTS) * B)[None, None, None, :]
    MASK: tl.constexpr = (1 << B) - 1
    if BITS == 32:
        pairs = (words >> shift) & (MASK * 0x00010001)
    else:
        pairs = ((words >> shift) & MASK) | (((words >> (shift + HALF)) & MASK) << 16)
    return tl.reshape(pairs, (R, 4, 4 * CHUNKS))


@triton.jit
def trit_pairs(W, p0, p1, p2, row, at, rows, R: tl.constexpr, L: tl.constexpr):
    """Digits 0, 1, 2 of base-3 bytes as `bit_pairs` has codes, and the tail word i32[R, 4, 1].

    One formula for every digit: digit n of byte b = (((b * 3^n) mod 256) * 3) >> 8, two bytes at a time. The stages'
    byte counts are the constants; slot S of a stage of `count` bytes is digit 8 S div count of its bytes, but for the
    tail, whose two or four bytes give the digit (8 S + 2 c) div count.
    """
    SLOTS: tl.constexpr = 4 * L[2]
    STEP: tl.constexpr = 32 * L[2]
    COUNT0: tl.constexpr = L[3]
    COUNT1: tl.constexpr = L[4]
    COUNT2: tl.constexpr = L[5]
    END0: tl.constexpr = COUNT0 * 5 // 8
    END1: tl.constexpr = END0 + COUNT1 * 5 // 8
    first = load_words(W, p0, row, at, rows, 32, COUNT0 // 16, R)
    second = load_words(W, p1, row, at, rows, 32 if COUNT1 == 16 else 16, 1, R)
    tail = load_plane(W, p2, row, at, rows, STEP, 32, STEP, 1)
    slot = tl.arange(0, SLOTS)[None, None, :]
    lane = tl.arange(0, 4)[None, :, None]
    if COUNT0 == 32:
        low, high = tl.split(first)
        word0 = tl.where((slot & 2) == 0, low[:, :, None], high[:, :, None])
    else:
        word0 = first
    word0 = word0 >> (8 * (slot & 1))
    word1 = second
    if COUNT1 == 16:
        word1 = word1 >> (8 * ((slot - END0) & 1))
    else:
        word1 = (word1 & 0xFF) | ((word1 & 0xFF00) << 8)
    word2 = tail >> (8 * ((2 * lane) % COUNT2))
    word2 = (word2 & 0xFF) | ((word2 & 0xFF00) << 8)
    digit1 = (slot - END0) // (COUNT1 // 8)
    digit2 = (8 * (slot - END1) + 2 * lane) // COUNT2
    digit = tl.where(slot < END0, slot // (COUNT0 // 8), tl.where(slot < END1, digit1, digit2))
    power = tl.where(digit == 0, 1, tl.where(digit == 1, 3, tl.where(digit == 2, 9, tl.where(digit == 3, 27, 81))))
    word = tl.where(slot < END0, word0, tl.where(slot < END1, word1, word2)) & 0x00FF00FF
    product = (word * power) & 0x00FF00FF
    return ((product * 3) >> 8) & 0x00030003, tail


@triton.jit
def code_pairs(W, p0, p1, p2, row, at, rows, R: tl.constexpr, L: tl.constexpr):
    """(codes i32[R, 4, slots] two a word, the trit tail word i32[R, 4, 1] or 0)."""
    if L[3] != 0:
        pairs, tail = trit_pairs(W, p0, p1, p2, row, at, rows, R, L)
    else:
        pairs = bit_pairs(W, p0, row, at, rows, R, L[2], L[0])
        if L[1] != 0:
            pairs = pairs | (bit_pairs(W, p1, row, at, rows, R, L[2], L[1]) << L[0])
        tail = 0
    return pairs, tail


@triton.jit
def look_up(code, L: tl.constexpr):
    """Signed 8-bit values of codes 0..15 from the codebook's four words, by selects and shifts alone."""
    low = tl.where((code & 4) == 0, L[11], L[12])
    high = tl.where((code & 4) == 0, L[13], L[14])
    word = tl.where(code < 8, low, high)
    return (word << (24 - 8 * (code & 3))) >> 24


@triton.jit
def steps_of(code, L: tl.constexpr):
    """What codes stand for before scaling, fp32: MUL * code - OFFSET, or the codebook's value."""
    if L[10] == 0:
        found = look_up(code, L).to(tl.float32)
    else:
        found = ((code * L[10]) | MAGIC_BITS).to(tl.float32, bitcast=True) - (MAGIC + L[9])
    return found
