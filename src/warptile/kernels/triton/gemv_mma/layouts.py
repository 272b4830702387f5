"""Which lane and register of a warp holds what, for `triton.gemv_mma`: linear layouts of Gluon tensors.

In a 16 x 8 x 16 matrix instruction lane 4 r + c holds rows r and r + 8 of the left factor and column r of the right
one, of both the elements 2 c, 2 c + 1, 2 c + 8 and 2 c + 9 along k: the quad arrangement's own split of a row. Every
warp has a part of k of its own, so the first dimension of a tensor is the warp.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.constexpr_function
def powers(n):
    """1, 2, 4 .. below n."""
    return [1 << i for i in range(n.bit_length() - 1)]


@gluon.constexpr_function
def bases(sizes, order):
    """Unit steps (dimension, length) as vectors of len(sizes) dimensions."""
    return [[length if d == at else 0 for d in range(len(sizes))] for at, length in order]


@gluon.constexpr_function
def linear(sizes, registers, lanes, warps):
    """A layout of a tensor of `sizes` from (dimension, length) steps; a lane step of dimension -1 moves nothing."""
    return gl.DistributedLinearLayout(
        bases(sizes, registers), bases(sizes, lanes), bases(sizes, warps), [], list(sizes)
    )


@gluon.constexpr_function
def pair_layout(W, U, R, groups, slots):
    """i32[W, U, R, 4, groups, slots]: code pairs of U steps and R rows a warp; lane 4 r + c has rows r, r + 8, .."""
    registers = [(5, b) for b in powers(slots)] + [(4, b) for b in powers(groups)]
    registers += [(1, b) for b in powers(U)] + [(2, b) for b in powers(R) if b >= 8]
    lanes = [(3, 1), (3, 2), (2, 1), (2, 2), (2, 4)]
    return linear([W, U, R, 4, groups, slots], registers, lanes, [(0, b) for b in powers(W)])


@gluon.constexpr_function
def word_layout(W, U, R, words):
    """i32[W, U, R, 4, words]: the code words of `pair_layout`'s pairs."""
    registers = [(4, b) for b in powers(words)] + [(1, b) for b in powers(U)] + [(2, b) for b in powers(R) if b >= 8]
    lanes = [(3, 1), (3, 2), (2, 1), (2, 2), (2, 4)]
    return linear([W, U, R, 4, words], registers, lanes, [(0, b) for b in powers(W)])


@gluon.constexpr_function
def scale_layout(W, U, R, groups):
    """[W, U, R, groups]: scales before they are passed on, groups over the four lanes of a quad as far as there are."""
    spread = [(3, b) for b in powers(groups)][:2]
    lanes = (spread + [(-1, 1)] * 2)[:2] + [(2, 1), (2, 2), (2, 4)]
    registers = [(3, b) for b in powers(groups)][2:]
    registers += [(1, b) for b in powers(U)] + [(2, b) for b in powers(R) if b >= 8]
    return linear([W, U, R, groups], registers, lanes, [(0, b) for b in powers(W)])


@gluon.constexpr_function
def block_layout(W, blocks, R):
    """i32[W, blocks, R, 4]: four words of a superblock, all in each lane of a quad."""
    registers = [(3, 1), (3, 2)] + [(1, b) for b in powers(blocks)] + [(2, b) for b in powers(R) if b >= 8]
    lanes = [(-1, 1), (-1, 1), (2, 1), (2, 2), (2, 4)]
    return linear([W, blocks, R, 4], registers, lanes, [(0, b) for b in powers(W)])


@gluon.constexpr_function
def x_layout(W, U, chunks, again, tokens):
    """i32[W, U, chunks, 4 c, again, tokens, 4 s]: pairs of x, the right factor; `again` repeats few tokens to eight."""
    registers = [(6, 1), (6, 2)] + [(2, b) for b in powers(chunks)] + [(1, b) for b in powers(U)]
    registers += [(5, b) for b in powers(tokens) if b >= 8]
    columns = [(5, b) for b in powers(tokens) if b < 8] + [(4, b) for b in powers(again)]
    lanes = [(3, 1), (3, 2), *columns]
    return linear([W, U, chunks, 4, again, tokens, 4], registers, lanes, [(0, b) for b in powers(W)])


@gluon.constexpr_function
def staging_layout(W, U, tokens, chunks):
    """[W, U, tokens, chunks, 4 s, 4 c]: pairs of x as they lie in memory.

    Few tokens: one word after another over a warp's lanes. Four and more: a lane has a token's whole chunk, which it
    loads and stores 16 bytes at a time, its neighbours other tokens.
    """
    words = [(5, b) for b in powers(4)] + [(4, b) for b in powers(4)]
    rest = [(3, b) for b in powers(chunks)] + [(1, b) for b in powers(U)]
    others = [(2, b) for b in powers(tokens)]
    if tokens >= 4:
        spread = others[:3] + rest + others[3:]
        lanes, registers = spread[:5], words + spread[5:]
    else:
        order = words + rest + others
        lanes, registers = order[:5], order[5:]
    lanes = (lanes + [(-1, 1)] * 5)[:5]
    return linear([W, U, tokens, chunks, 4, 4], registers, lanes, [(0, b) for b in powers(W)])


@gluon.constexpr_function
def sums_layout(W):
    """fp32[W, R, tokens]: sums of the matrix instruction, a part of k a warp."""
    return gl.NVMMADistributedLayout(version=[2, 0], warps_per_cta=[W, 1, 1], instr_shape=[1, 16, 8])
