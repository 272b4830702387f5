"""The decoder of integer kernels: four codes as signed bytes of a word, and a chunk's codes as words.

    int codes_s4(Chunk c, uint i);   // elements 4i .. 4i+3, one signed byte each
    const uint CODE_WORDS;           // 32-bit words a chunk's codes take
    void put_codes(Chunk c, out uint words[CODE_WORDS]);
    void take_codes(inout Chunk c, uint words[CODE_WORDS]);

With s a signed byte, value = c.d * s, less c.m where `Layout.signed_minimum`: an offset is taken off the code, a
codebook of more than two values is looked up.
"""

from __future__ import annotations

from collections.abc import Sequence

from warptile.contracts.errors import UnusableInput

_EVERY_BYTE = 0x01010101
_HIGH_BITS = 0x80808080


def int8_decoder(members: Sequence[str], bits: int, offset: int, codebook: Sequence[int] | None) -> str:
    """GLSL to follow `Layout.glsl()`.

    members: the words of `struct Chunk` that hold codes; bits: of a code; codebook: four words of int8 values, or None.
    Raises UnusableInput where a code less its offset is no signed byte.
    """
    lookup, signed = "", "codes4(c, i)"
    if codebook is not None:
        lookup, signed = _lookup(codebook), "codebook_s4(codes4(c, i))"
    elif offset == 128:
        # x - 128 in a signed byte is x with its highest bit turned over.
        signed = f"codes4(c, i) ^ {_HIGH_BITS:#010x}u"
    elif bits >= 8:
        raise UnusableInput(f"codes of {bits} bits with offset {offset} are not signed bytes")
    elif offset:
        # The highest bit of each byte is set first so that no borrow leaves it.
        signed = f"((codes4(c, i) | {_HIGH_BITS:#010x}u) - {offset * _EVERY_BYTE:#010x}u) ^ {_HIGH_BITS:#010x}u"
    put = "".join(f"    words[{j}] = c.{name};\n" for j, name in enumerate(members))
    take = "".join(f"    c.{name} = words[{j}];\n" for j, name in enumerate(members))
    return f"""\
const uint CODE_WORDS = {len(members)}u;
{lookup}int codes_s4(Chunk c, uint i) {{
    return int({signed});
}}
void put_codes(Chunk c, out uint words[CODE_WORDS]) {{
{put}}}
void take_codes(inout Chunk c, uint words[CODE_WORDS]) {{
{take}}}
"""


def _lookup(words: Sequence[int]) -> str:
    """`codebook_s4`: four codes (0..15), one a byte, to their int8 values in the same bytes."""
    a, b, c, d = (f"uvec4({w:#010x}u)" for w in words)
    return f"""\
uint codebook_s4(uint codes) {{
    uvec4 q = uvec4(codes & 255u, (codes >> 8) & 255u, (codes >> 16) & 255u, codes >> 24);
    bvec4 odd = notEqual(q & 4u, uvec4(0u));
    uvec4 w = mix(mix({a}, {b}, odd), mix({c}, {d}, odd), greaterThan(q, uvec4(7u)));
    w = (w >> (8u * (q & 3u))) & 255u;
    return w.x | (w.y << 8) | (w.z << 16) | (w.w << 24);
}}
"""
