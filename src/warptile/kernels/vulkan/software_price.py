"""Instructions that a software device runs for a direct kernel, counted a subgroup (one host vector) at a time.

On llvmpipe every value is a vector of one element a lane. Arithmetic is one instruction a vector. A load or store
inside a loop is itself a loop over lanes: for each lane the mask is tested, the address taken out, and for each
component the bounds compared and the element merged into its vector; an address that is the same for all lanes makes
no difference there. The counts below are read from the machine code Mesa 22.3 emits (LLVM 15, 256-bit vectors); what
matters is their ratio to one arithmetic instruction, which other versions keep.
"""

from __future__ import annotations

from dataclasses import dataclass

from warptile.formats import Format

CHUNK = 32
# A lane's turn of the loop: mask test, address, buffer size and base.
LANE = 10
# A component's: compare with the size, widen the index, compare lanes, masked broadcast from memory.
WORD = 5
WORD64 = 8
STORE_WORD = 4
# shift, mask, convert, multiply, subtract; a second code plane adds a shift, a mask and an or for four elements.
DECODE = 5.0
DECODE_PLANE = 0.75
# Selects and shifts of a codebook's look-up.
DECODE_CODEBOOK = 12.0
FMA = 2
SHUFFLE = 1
# Host vector registers that hold sums; each further sum is loaded and stored once a chunk.
SUMS_IN_REGISTERS = 20
CHUNK_LOOP = 20
# One workgroup: its turn at the queue, its frame, its epilogue.
WORKGROUP = 3000
SUBGROUP = 300
BARRIER = 100
INSTRUCTIONS_PER_SECOND = 1e10
# The compiler's time an instruction of the unrolled loop body: 0.25, 0.7 and 1.5 s at 4x8, 8x16 and 8x32 sums.
COMPILE_SECONDS = 5.5e-5


@dataclass(frozen=True)
class DirectWork:
    """What a subgroup of a direct kernel does: chunks of k it takes and its register tile."""

    chunks: int
    thread_n: int
    thread_m: int
    load_n: int
    x_access: str
    split_k: int = 1


def load(lanes: int, words: int, word: int = WORD) -> int:
    """Instructions of one load of `words` components."""
    return lanes * (LANE + word * words)


def weight_instructions(found: Format, work: DirectWork, lanes: int) -> float:
    """Loads and decodes of one chunk of thread_n rows a lane."""
    layout = found.layout
    loads = 0
    for plane in layout.planes:
        words = max(1, plane.bits * work.load_n // 32)
        loads += max(1, plane.per_block * CHUNK // layout.block) * load(lanes, words)
    decode = DECODE + DECODE_PLANE * (len(layout.codes.planes(layout.block)) - 1)
    decode += DECODE_CODEBOOK if layout.codebook is not None else 0.0
    return loads * work.thread_n / work.load_n + decode * CHUNK * work.thread_n


def activation_instructions(work: DirectWork, lanes: int) -> float:
    """Loads and shuffles of one chunk of thread_m rows of x."""
    if work.x_access == "direct":
        return float(work.thread_m * (CHUNK // 4) * load(lanes, 4))
    if work.x_access == "shuffle":
        fetches, each = -(-work.thread_m // (lanes // 8)), load(lanes, 4)
    else:
        fetches, each = -(-work.thread_m // (lanes // 4)), load(lanes, 4, WORD64) + 12
    return float(fetches * each + work.thread_m * CHUNK * SHUFFLE)


def subgroup_instructions(found: Format, work: DirectWork, lanes: int) -> float:
    """Instructions of one subgroup from start to end."""
    sums = work.thread_n * work.thread_m
    spilled = max(0, sums - SUMS_IN_REGISTERS)
    chunk = (
        weight_instructions(found, work, lanes)
        + activation_instructions(work, lanes)
        + FMA * CHUNK * sums
        + 2 * spilled
        + CHUNK_LOOP
    )
    store = sums / work.load_n * lanes * (LANE + STORE_WORD * work.load_n)
    meeting = 0.0
    if work.split_k > 1:
        meeting = BARRIER + 2 * sums + sums * lanes * (LANE + STORE_WORD)
    return SUBGROUP + work.chunks * chunk + store / work.split_k + meeting


def compile_seconds(found: Format, work: DirectWork, lanes: int) -> float:
    """Seconds the driver's compiler takes: its time follows the arithmetic of one unrolled chunk."""
    arithmetic = (FMA * work.thread_n * work.thread_m + SHUFFLE * work.thread_m + DECODE * work.thread_n) * CHUNK
    loads = weight_instructions(found, work, lanes) + activation_instructions(work, lanes)
    return COMPILE_SECONDS * (arithmetic + loads / lanes)


def launch_seconds(
    found: Format, work: DirectWork, lanes: int, subgroups: int, workgroups: int, host_threads: int
) -> float:
    """Seconds of a launch: workgroups dealt to host threads, each running its subgroups one after another.

    host_threads: 0 where the host is not known; the order of tiles is then that of one thread.
    """
    rounds = -(-workgroups // max(1, host_threads))
    each = WORKGROUP + subgroups * subgroup_instructions(found, work, lanes)
    return rounds * each / INSTRUCTIONS_PER_SECOND
