"""Loaders that unpack a base-3 block by a word a thread, instead of a chunk a thread.

A block's words are dealt to neighbouring threads. A word of a full stage gives one quad (four elements) a digit; a word
of a two-byte stage gives a quad every two digits. "divergent": a branch a stage, each with a loop of its own, so that a
subgroup passes through all of them. "uniform": one loop of five steps for every thread, whatever its word; only where a
quad is stored differs, and threads without a quad at a step store nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from warptile.layouts.trits import DIGITS, TritPlane

CHUNK_QUADS = 8

_FUNCTIONS = """\
uint next_digits(inout uint even, inout uint odd) {
    even *= 3u;
    odd *= 3u;
    const uint digits = ((even >> 8) & 0x00030003u) | (odd & 0x03000300u);
    even &= 0x00ff00ffu;
    odd &= 0x00ff00ffu;
    return digits;
}
"""


@dataclass(frozen=True)
class WordStage:
    """Words [first, last) of a block: word w gives quad `quad + (w - first) + n * step` at its digit n.

    digits: of a byte. half: a two-byte stage in the low half of its one word; a quad takes two digits of both bytes.
    """

    first: int
    last: int
    quad: int
    step: int
    digits: int
    half: bool = False

    @property
    def loops(self) -> int:
        """Quads a word gives."""
        return self.digits // 2 if self.half else self.digits


def word_stages(plane: TritPlane) -> tuple[WordStage, ...]:
    """The stages of a plane by words. Every stage but a two-byte one holds whole words."""
    found: list[WordStage] = []
    byte = element = 0
    for count, digits in plane.stages:
        words = max(1, count // 4)
        found.append(WordStage(byte // 4, byte // 4 + words, element // 4, words, digits, count == 2))
        byte += count
        element += count * digits
    return tuple(found)


def lanes(plane: TritPlane) -> int:
    """Threads a block: its words that hold digits, up to a power of two."""
    return 1 << (word_stages(plane)[-1].last - 1).bit_length()


def block_chunks(plane: TritPlane) -> int:
    """Chunks of 32 elements a block."""
    return plane.block // (4 * CHUNK_QUADS)


def steps(plane: TritPlane, loader: str) -> int:
    """Unpacking steps a subgroup passes through: the loops of all branches, or one loop of five."""
    return DIGITS if loader == "uniform" else sum(stage.loops for stage in word_stages(plane))


def defines(plane: TritPlane) -> str:
    """What the shader must know of the plane before its body."""
    return (
        f"#define BLOCK_LOADER\n#define LANES {lanes(plane)}u\n#define BLOCK_CHUNKS {block_chunks(plane)}u\n"
        f"#define BLOCK_WORDS {plane.nbytes // 4}u\n"
    )


def stage_block(plane: TritPlane, loader: str) -> str:
    """GLSL `stage_block(word, lane, chunk, row)`: thread `lane` unpacks its word of the block that starts at `word`."""
    body = _uniform(plane) if loader == "uniform" else _divergent(plane)
    return _FUNCTIONS + "void stage_block(uint word, uint lane, uint chunk, uint row) {\n" + body + "}\n"


def _divergent(plane: TritPlane) -> str:
    text = ""
    for i, stage in enumerate(word_stages(plane)):
        skip = "        next_digits(even, odd);\n    " if stage.half else ""
        load = "two_digits(W[word + lane * P.rows])" if stage.half else "W[word + lane * P.rows]"
        text += f"""\
    {"else if" if i else "if"} (lane < {stage.last}u) {{
        const uint w = {load};
        uint even = w & 0x00ff00ffu, odd = (w >> 8) & 0x00ff00ffu;
        [[dont_unroll]] for (uint n = 0u; n < {stage.loops}u; ++n) {{
            put_quad(next_digits(even, odd), {stage.quad}u + lane - {stage.first}u + n * {stage.step}u, chunk, row);
    {skip}    }}
    }}
"""
    return text


def _uniform(plane: TritPlane) -> str:
    stages = word_stages(plane)

    def pick(values: list[str]) -> str:
        text = values[-1]
        for stage, value in list(zip(stages, values, strict=True))[-2::-1]:
            text = f"lane < {stage.last}u ? {value} : {text}"
        return text

    half = next((stage for stage in stages if stage.half), None)
    is_half = f"lane == {half.first}u" if half else "false"
    word = f"    w = {is_half} ? two_digits(w) : w;\n" if half else ""
    return f"""\
    uint w = W[word + min(lane, {stages[-1].last - 1}u) * P.rows];
{word}    uint even = w & 0x00ff00ffu, odd = (w >> 8) & 0x00ff00ffu;
    const uint first = {pick([f"{s.quad}u + lane - {s.first}u" for s in stages])};
    const uint step = {pick([f"{s.step}u" for s in stages])};
    const uint digits = lane < {stages[-1].last}u ? {pick([f"{s.digits}u" for s in stages])} : 0u;
    // Two digits a quad: every other step of such a word stores.
    const uint every = {is_half} ? 1u : 0u;
    [[dont_unroll]] for (uint n = 0u; n < {DIGITS}u; ++n) {{
        const uint codes = next_digits(even, odd);
        if (n < digits && (n & every) == 0u) put_quad(codes, first + (n >> every) * step, chunk, row);
    }}
"""
