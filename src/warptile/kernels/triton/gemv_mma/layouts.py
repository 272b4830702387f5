"""Which lane and register of a warp holds what, for `triton.gemv_mma`: linear layouts of Gluon tensors.

In a 16 x 8 x 16 matrix instruction lane 4 r + c holds rows r and r + 8 of the left factor and column r of the right
one, of both the elements 2 c, 2 c + 1, 2 c + 8 and 2 c + 9 along k: the quad arrangement's own split of a row. Warps
split k, W ways, which is the first dimension of a tensor, and rows, N ways, 16 each (and 16 more each above those).
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
def row_registers(R, N):
    """Steps along R rows, dimension 2, that a thread holds."""
    return [(2, b) for b in powers(R) if b == 8 or b >= 16 * N]


@gluon.constexpr_function
def warp_steps(W, N):
    """Steps from warp to warp: N ways over rows, dimension 2, then W ways over k, dimension 0."""
    return [(2, 16 * b) for b in powers(N)] + [(0, b) for b in powers(W)]


@gluon.constexpr_function
def pair_layout(W, N, U, R, groups, slots):
    """i32[W, U, R, 4, groups, slots]: code pairs of U steps and R rows a warp; lane 4 r + c has rows r, r + 8, .."""
    registers = [(5, b) for b in powers(slots)] + [(4, b) for b in powers(groups)]
    registers += [(1, b) for b in powers(U)] + row_registers(R, N)
    lanes = [(3, 1), (3, 2), (2, 1), (2, 2), (2, 4)]
    return linear([W, U, R, 4, groups, slots], registers, lanes, warp_steps(W, N))


@gluon.constexpr_function
def word_layout(W, N, U, R, words):
    """i32[W, U, R, 4, words]: the code words of `pair_layout`'s pairs."""
    registers = [(4, b) for b in powers(words)] + [(1, b) for b in powers(U)] + row_registers(R, N)
    lanes = [(3, 1), (3, 2), (2, 1), (2, 2), (2, 4)]
    return linear([W, U, R, 4, words], registers, lanes, warp_steps(W, N))


@gluon.constexpr_function
def scale_layout(W, N, U, R, groups):
    """[W, U, R, groups]: scales before they are passed on, groups over the four lanes of a quad as far as there are."""
    spread = [(3, b) for b in powers(groups)][:2]
    lanes = (spread + [(-1, 1)] * 2)[:2] + [(2, 1), (2, 2), (2, 4)]
    registers = [(3, b) for b in powers(groups)][2:] + [(1, b) for b in powers(U)] + row_registers(R, N)
    return linear([W, U, R, groups], registers, lanes, warp_steps(W, N))


@gluon.constexpr_function
def block_layout(W, N, blocks, R):
    """i32[W, blocks, R, 4]: four words of a superblock, all in each lane of a quad."""
    registers = [(3, 1), (3, 2)] + [(1, b) for b in powers(blocks)] + row_registers(R, N)
    lanes = [(-1, 1), (-1, 1), (2, 1), (2, 2), (2, 4)]
    return linear([W, blocks, R, 4], registers, lanes, warp_steps(W, N))


@gluon.constexpr_function
def x_layout(W, N, U, chunks, again, tokens):
    """i32[W, U, chunks, 4 c, again, tokens, 4 s]: pairs of x, the right factor; `again` repeats few tokens to eight."""
    registers = [(6, 1), (6, 2)] + [(2, b) for b in powers(chunks)] + [(1, b) for b in powers(U)]
    registers += [(5, b) for b in powers(tokens) if b >= 8]
    columns = [(5, b) for b in powers(tokens) if b < 8] + [(4, b) for b in powers(again)]
    warps = [(-1, b) for b in powers(N)] + [(0, b) for b in powers(W)]
    return linear([W, U, chunks, 4, again, tokens, 4], registers, [(3, 1), (3, 2), *columns], warps)


@gluon.constexpr_function
def staging_layout(B, W, N, U, tokens, chunks):
    """[B, W, U, tokens, chunks, 4 s, 4 c]: pairs of x as they lie in memory.

    Lanes are such that neighbouring words of shared memory, [.. chunks, 4 c, tokens, 4 s], are stored at once: one or
    two tokens word by word, more by lanes that load 16 bytes each. Warps that share a part of k share its x.
    """
    c = [(6, b) for b in powers(4)]
    rest = [(4, b) for b in powers(chunks)] + [(2, b) for b in powers(U)]
    some = [(3, b) for b in powers(tokens)]
    blocks = [(0, b) for b in powers(B)]
    s = [(5, b) for b in powers(4)]
    first, order = (c, s + some[:3] + rest + some[3:] + blocks) if tokens >= 4 else ([], c + s + some + rest + blocks)
    own = 5 + len(powers(N))
    lanes = (order[:5] + [(-1, 1)] * 5)[:5]
    shared = (order[5:own] + [(-1, 1)] * own)[: own - 5]
    return linear([B, W, U, tokens, chunks, 4, 4], first + order[own:], lanes, shared + [(1, b) for b in powers(W)])


@gluon.constexpr_function
def sums_layout(W, N):
    """fp32[W, R, tokens]: sums of the matrix instruction."""
    return gl.NVMMADistributedLayout(version=[2, 0], warps_per_cta=[W, N, 1], instr_shape=[1, 16, 8])
