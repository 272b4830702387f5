"""What a device must have for a tile of cooperative matrices, whatever its operands are."""

from __future__ import annotations

from collections.abc import Iterable

from warptile.contracts import BrokenRule, Limits
from warptile.contracts.limits import MATRIX_ORDERS, CooperativeMatrix
from warptile.kernels.vulkan.mul_mm_coop.tile import MulMmCoopTile


def device_rules(
    tile: MulMmCoopTile,
    limits: Limits,
    features: Iterable[str],
    types: tuple[str, str],
    shared_bytes: int,
    ordered: str = "",
) -> list[BrokenRule]:
    """The rules a device sets: a tile that breaks only these is valid elsewhere.

    types: of the matrices' a and c. ordered: the setting that needs a known `Limits.matrix_order`, "" for none.
    """
    broken: list[BrokenRule] = []

    def rule(holds: bool, text: str, numbers: str) -> None:
        if not holds:
            broken.append(BrokenRule(text, numbers, well_formed=True))

    has = ", ".join(sorted(limits.features)) or "none"
    for feature in sorted(features):
        rule(limits.has(feature), f"needs feature {feature}", f"the device has {has}")
    rule(
        CooperativeMatrix(*tile.matrix_sides, *types) in limits.cooperative_matrices,
        "the device lists the matrix",
        f"{tile.matrix} {' '.join(types)}; it lists {listed_matrices(limits)}",
    )
    sizes = limits.subgroup_sizes or (limits.subgroup,)
    rule(
        tile.subgroup in sizes,
        "subgroup is one of the device's sizes",
        f"{tile.subgroup}; the device has {', '.join(map(str, sizes))}",
    )
    rule(
        tile.workgroup <= limits.max_workgroup,
        "warps * subgroup <= largest workgroup",
        f"{tile.workgroup} > {limits.max_workgroup}",
    )
    rule(
        shared_bytes <= limits.shared_bytes,
        "shared bytes <= shared bytes of a workgroup",
        f"{shared_bytes} > {limits.shared_bytes}",
    )
    if ordered:
        known = ", ".join(MATRIX_ORDERS)
        rule(
            limits.matrix_order in MATRIX_ORDERS,
            f"{ordered}: a lane's part of a matrix is in an order the kernel knows ({known})",
            f"order {limits.matrix_order or 'not found by the probe'}",
        )
    return broken


def listed_matrices(limits: Limits) -> str:
    """The device's matrices in words."""
    return ", ".join(f"{c.m}x{c.n}x{c.k} {c.a_type} {c.c_type}" for c in limits.cooperative_matrices) or "none"
