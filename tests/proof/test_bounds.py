"""The bound holds for what a device may do, and is tight enough to see one wrong code."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from warptile import formats
from warptile.contracts import Arithmetic
from warptile.proof.bounds import (
    BlockSums,
    Moves,
    Sums,
    Unbounded,
    activation_moves,
    element_bound,
    gamma,
    operand_error,
    weight_moves,
)
from warptile.proof.references import Wanted, build

FP32 = Arithmetic("fp32", "fp32", "fp32", 1)


def test_gamma_is_highams() -> None:
    assert gamma(3, 2.0**-24) == pytest.approx(3 * 2.0**-24 / (1 - 3 * 2.0**-24), rel=1e-15)
    with pytest.raises(Unbounded, match="unbounded"):
        gamma(2048, 2.0**-11)


def sums(products: float, terms: float, x: float, w: float, amplitude: float) -> Sums:
    return Sums(*(np.array([[v]]) for v in (products, terms, x, w, amplitude)))


def test_one_product_worked_by_hand() -> None:
    """x = 3, w = 2 made of terms 6 and 4 (A = 10): decode 2 gamma_2 A |x|, two roundings, the store, the reference."""
    u = 2.0**-24
    moved = 3 * 2 * gamma(2, u) * 10
    computed = moved + gamma(2, u) * (6 + moved) + 2 * 2.0**-126
    by_hand = computed + u * (6 + computed) + gamma(1, 2.0**-53) * 6
    bound = element_bound(np.array([[6.0]]), sums(6, 30, 3, 2, 10), FP32, k=1)
    assert bound[0, 0] == pytest.approx(by_hand, rel=1e-12)


def test_both_operands_in_fp16_worked_by_hand() -> None:
    """The same product: |x| e_w + e_x |w| + e_x e_w, each e a conversion of 2^-10 relative and 2^-24 absolute."""
    decode = gamma(2, 2.0**-24) * 10
    e_w = 2 * decode + 2.0**-10 * (2 + decode) + 2.0**-24
    e_x = 2.0**-10 * 3 + 2.0**-24
    by_hand = 3 * e_w + e_x * 2 + e_x * e_w
    error = operand_error(sums(6, 30, 3, 2, 10), weight_moves("fp16"), activation_moves("fp16", "fp32"), 1)
    assert error[0, 0] == pytest.approx(by_hand, rel=1e-12)


def test_decode_error_is_relative_to_the_terms_where_they_cancel() -> None:
    """w = 1000.5 - 1000 in fp32 arithmetic may be off by an ulp of 1000, far more than any multiple of u * 0.5."""
    error = operand_error(sums(0.5, 2000.5, 1, 0.5, 2000.5), weight_moves("fp32"), activation_moves("fp32", "fp32"), 1)
    assert error[0, 0] > np.spacing(np.float32(1000))


def test_conversion_to_fp16_covers_either_direction_and_subnormals() -> None:
    values = np.concatenate([np.linspace(1, 2, 5001), np.linspace(0, 2.0**-13, 5001)])
    down = np.nextafter(values.astype(np.float16), np.float16(0)).astype(np.float64)
    truncated = np.where(values.astype(np.float16).astype(np.float64) > values, down, values.astype(np.float16))
    moves = activation_moves("fp16", "fp32")
    assert (np.abs(truncated - values) <= moves.beta * values + moves.eta).all()
    assert activation_moves("fp16", "fp16") == Moves(0, 0, 0)


def _sequential(x: np.ndarray, w: np.ndarray, order: np.ndarray) -> np.ndarray:
    """fp32 accumulation in the given order, every product and sum rounded."""
    total = np.zeros((len(x), len(w)), np.float32)
    for k in order:
        total += x[:, k, None] * w[None, :, k]
    return total


@pytest.mark.parametrize("kind", ["fp32", "fp16"])
@pytest.mark.parametrize("name", ["Q4_0", "Q4_1", "Q8_0", "Q4_K", "Q6_K"])
def test_the_bound_holds_in_any_order_and_rounding_of_operands(name: str, kind: str) -> None:
    k = 512
    fmt = formats.by_name(name)
    case = build(Wanted(fmt, k, "random", 3), 6, 8)
    w = fmt.decode(case.blocks.reshape(-1, fmt.block_bytes)).reshape(len(case.blocks), k)
    x = case.x
    if kind == "fp16":
        x, w = _towards_zero(x), _towards_zero(w)
    arithmetic = Arithmetic(kind, kind, "fp32", k)
    bound = element_bound(case.want, case.sums, arithmetic, k)
    largest_first = np.argsort(-np.abs(x).sum(axis=0))
    for order in (np.arange(k), largest_first, largest_first[::-1]):
        assert (np.abs(_sequential(x, w, order) - case.want) <= bound).all()


def _towards_zero(values: np.ndarray) -> np.ndarray:
    half = values.astype(np.float16)
    over = np.abs(half.astype(np.float64)) > np.abs(values.astype(np.float64))
    return np.where(over, np.nextafter(half, np.float16(0)), half).astype(np.float32)


def test_one_wrong_code_in_fp32_exceeds_the_bound() -> None:
    """k = 576, as SmolLM2's: a code off by one moves most elements by more than their bound."""
    fmt, k = formats.by_name("Q4_0"), 576
    case = build(Wanted(fmt, k, "random", 0), 16, 64)
    d = np.abs(fmt.split(case.blocks.reshape(-1, fmt.block_bytes)).scales["d"].view("<f2").astype(np.float64))
    bound = element_bound(case.want, case.sums, Arithmetic("fp32", "fp32", "fp32", k), k)
    shift = np.abs(case.x[:, :1].astype(np.float64)) * np.median(d)
    assert (shift > bound).mean() > 0.9


def test_unknown_arithmetic_has_no_bound() -> None:
    with pytest.raises(Unbounded, match="q8_0"):
        element_bound(np.ones((1, 1)), sums(1, 1, 1, 1, 1), Arithmetic("q8_0", "q8_0", "int32", 1), 1)
    with pytest.raises(Unbounded, match="fp8"):
        weight_moves("fp8")


INT8 = Arithmetic("fp32", "q8_1", "int32", 2 + 4)


def quantized(x: np.ndarray) -> np.ndarray:
    """x[m, k] as int8 codes times their scale, the largest of each 32 divided by 127."""
    blocks = x.reshape(len(x), -1, 32)
    scale = np.abs(blocks).max(axis=2, keepdims=True) * np.float32(1 / 127)
    codes = np.rint(blocks / np.where(scale > 0, scale, 1))
    return (codes * scale.astype(np.float64)).reshape(x.shape)


@pytest.mark.parametrize("name", ["Q4_0", "Q4_1", "Q8_0", "Q4_K", "Q6_K"])
@pytest.mark.parametrize("weights", ["fp32", "fp16 scales"])
def test_the_bound_holds_for_activations_quantized_in_blocks(name: str, weights: str) -> None:
    fmt = formats.by_name(name)
    case = build(Wanted(fmt, 512, "random", 5, x_block=32), 16, 40)
    assert case.sums is not None
    w = fmt.decode(case.blocks.reshape(-1, fmt.block_bytes)).reshape(40, 512).astype(np.float64)
    arithmetic = dataclasses.replace(INT8, weights=weights)
    bound = element_bound(case.want, case.sums, arithmetic, 512)
    error = np.abs(quantized(case.x) @ w.T - case.want)
    assert (error <= bound).all()
    assert error.max() > bound.max() / 100


def test_half_a_scale_an_element_is_reached_and_no_more_is_allowed() -> None:
    """One block: a = 127, every other activation halfway between codes, all errors of the weights' signs."""
    x = np.array([[127.0] + [0.5] * 31])
    w = np.array([[1.0] + [2.0] * 31])
    a = np.full_like(x, 127.0)
    blocks = BlockSums(a @ w.T, a @ w.T, a.sum(keepdims=True))
    sized = Sums(x @ w.T, x @ w.T, x.sum(keepdims=True), w.sum(keepdims=True), w.sum(keepdims=True), blocks=blocks)
    want = x @ w.T
    bound = element_bound(want, sized, INT8, 32)[0, 0]
    assert bound >= 0.5 * 2 * 31
    assert bound < 0.5 * (2 * 31 + 1) * 1.0001
    with pytest.raises(Unbounded, match="no sums of blocks"):
        element_bound(want, dataclasses.replace(sized, blocks=None), INT8, 32)


def test_scales_in_fp16_move_each_term() -> None:
    moves = weight_moves("fp16 scales")
    scale, minimum = np.float32(0.001234), np.float32(0.0217)
    for code in (0, 7, 15):
        w = float(scale) * code - float(minimum)
        moved = float(np.float16(scale)) * code - float(np.float16(minimum))
        assert abs(moved - w) <= moves.alpha * (float(scale) * code + float(minimum)) + moves.eta
    tiny = 2.0**-26
    assert abs(0.0 * 127 - tiny * 127) <= moves.eta
