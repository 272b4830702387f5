"""When a tuple is valid for the shader it goes to, on a device; rules and numbers in llama.cpp's own names."""

from __future__ import annotations

from fractions import Fraction

from warptile.contracts import BrokenRule
from warptile.llama_cpp.host import HostDevice, Pipeline
from warptile.llama_cpp.shader import Reading, Shader

NAMES = ("BLOCK_SIZE", "BM", "BN", "BK", "WM", "WN", "WMITER", "TM", "TN", "TK", "WARP")
NAMES_BEFORE_TK = (*NAMES[:9], "WARP")
WARP_NAMES = ("BLOCK_SIZE", "BM", "BN", "WM", "WN", "WMITER", "TM", "TN", "WARP")


def named(constants: tuple[int, ...], shader: Shader | None) -> dict[str, int]:
    """A tuple's numbers by name: as the shader declares them, else by the tuple's length."""
    if shader is not None:
        names = shader.names()
        return {names[i]: value for i, value in enumerate(constants) if i in names}
    order = (
        NAMES if len(constants) >= len(NAMES) else NAMES_BEFORE_TK if len(constants) == 10 else NAMES[: len(constants)]
    )
    return dict(zip(order, constants, strict=False))


def broken_rules(pipeline: Pipeline, device: HostDevice, shader: Shader | None) -> list[BrokenRule]:
    """Every rule that a pipeline's tuple and divisors break. shader: None where this version has no sources."""
    numbers = named(pipeline.constants, shader)
    reading = None if shader is None else shader.at(pipeline.constants)
    macros = {name for name, _ in shader.variant.defines} if shader is not None else set[str]()
    broken = _divisor_rules(pipeline, numbers)
    if all(name in numbers for name in WARP_NAMES):
        broken += _warp_rules(numbers)
        if not broken and "COOPMAT" in macros:
            broken += _matrix_rules(numbers, pipeline, device, reading)
        elif not broken:
            broken += thread_rules(numbers, pairs="_q8_1" not in pipeline.shader)
    if reading is not None and shader is not None:
        broken += load_rules(shader, reading)
        broken += _shared_rules(reading, device)
    block = numbers.get("BLOCK_SIZE", 0)
    if block > device.max_workgroup:
        broken.append(
            BrokenRule("BLOCK_SIZE <= the device's largest workgroup", f"{block} > {device.max_workgroup}", True)
        )
    return broken


def _divisor_rules(pipeline: Pipeline, numbers: dict[str, int]) -> list[BrokenRule]:
    """The dispatch divides by the tile's own sides."""
    pairs = [
        (name, numbers[name], given)
        for name, given in zip(("BM", "BN"), pipeline.denoms, strict=False)
        if name in numbers
    ]
    return [
        BrokenRule(f"wg_denoms[{index}] = {name}", f"wg_denoms[{index}] {given}, {name} {value}")
        for index, (name, value, given) in enumerate(pairs)
        if value != given
    ]


def _warp_rules(t: dict[str, int]) -> list[BrokenRule]:
    """Warps tile the block, whatever the arithmetic."""
    broken: list[BrokenRule] = []

    def rule(holds: bool, text: str, numbers: str) -> None:
        if not holds:
            broken.append(BrokenRule(text, numbers))

    below = [name for name in WARP_NAMES if t[name] < 1]
    rule(not below, "every number is at least 1", ", ".join(f"{name} {t[name]}" for name in below))
    if below:
        return broken
    rule(t["BLOCK_SIZE"] % t["WARP"] == 0, "WARP divides BLOCK_SIZE", f"BLOCK_SIZE {t['BLOCK_SIZE']}, WARP {t['WARP']}")
    for side in "MN":
        tile, warp = t[f"B{side}"], t[f"W{side}"]
        rule(warp <= tile, f"W{side} <= B{side}", f"W{side} {warp} > B{side} {tile}")
        rule(warp > tile or tile % warp == 0, f"W{side} divides B{side}", f"B{side} {tile}, W{side} {warp}")
    if not broken:
        slots, warps = (t["BM"] // t["WM"]) * (t["BN"] // t["WN"]), t["BLOCK_SIZE"] // t["WARP"]
        rule(
            slots == warps,
            "(BM / WM) * (BN / WN) = BLOCK_SIZE / WARP",
            f"({t['BM']} / {t['WM']}) * ({t['BN']} / {t['WN']}) = {slots}, {t['BLOCK_SIZE']} / {t['WARP']} = {warps}",
        )
    return broken


def tuple_rules(numbers: dict[str, int], pairs: bool) -> list[BrokenRule]:
    """The rules between a tuple's numbers for a shader without cooperative matrices; pairs: see `thread_rules`."""
    return _warp_rules(numbers) or thread_rules(numbers, pairs)


def thread_rules(t: dict[str, int], pairs: bool) -> list[BrokenRule]:
    """Threads tile the warp. pairs: sums along m are kept two by two (mul_mm)."""
    broken: list[BrokenRule] = []
    area, step = t["WM"] * t["WN"], t["WARP"] * t["TM"] * t["TN"] * t["WMITER"]
    if area % step:
        numbers = f"{area} / {step} = {area / step:g}"
        return [BrokenRule("WNITER = WM * WN / (WARP * TM * TN * WMITER) is whole", numbers)]
    iterations = area // step
    for side, count in (("M", t["WMITER"]), ("N", iterations)):
        part = count * t[f"T{side}"]
        if t[f"W{side}"] % part:
            text = f"W{side} {t[f'W{side}']}, {count} * {t[f'T{side}']} = {part}"
            broken.append(BrokenRule(f"W{side}ITER * T{side} divides W{side}", text))
    if pairs and t["TM"] % 2:
        broken.append(BrokenRule("TM is even: sums along m are kept in pairs", f"TM {t['TM']}"))
    return broken


def _matrix_rules(
    t: dict[str, int], pipeline: Pipeline, device: HostDevice, reading: Reading | None
) -> list[BrokenRule]:
    """Cooperative matrices tile the warp, and a warp is a subgroup of the device."""
    broken: list[BrokenRule] = []
    for side in "MN":
        if t[f"W{side}"] % t[f"T{side}"]:
            numbers = f"W{side} {t[f'W{side}']}, T{side} {t[f'T{side}']}"
            broken.append(BrokenRule(f"T{side} divides W{side}", numbers))
    step, depth = t.get("TK", 1), reading.number("BK") if reading is not None else None
    if depth is not None and step and depth % step:
        broken.append(BrokenRule("TK divides BK", f"BK {depth}, TK {step}"))
    subgroup = pipeline.subgroup or device.subgroup
    if t["WARP"] != subgroup:
        broken.append(
            BrokenRule("WARP = the subgroup the pipeline runs with", f"WARP {t['WARP']}, subgroup {subgroup}")
        )
    return broken


def load_rules(shader: Shader, reading: Reading) -> list[BrokenRule]:
    """One pass of the threads over a tile's rows stays inside it, where the loop does not ask of each row."""
    broken: list[BrokenRule] = []
    for side, edge in (("a", "BM"), ("b", "BN")):
        rows, tile = reading.number(f"loadstride_{side}"), reading.number(edge)
        if rows is None or not tile:
            continue
        name = f"rows of {side} that the block loads at once"
        if rows < 1:
            broken.append(BrokenRule(f"{name} >= 1", f"loadstride_{side} {rows}"))
        elif tile % rows and not shader.guards_rows(side):
            broken.append(BrokenRule(f"{name} divide {edge}", f"loadstride_{side} {rows}, {edge} {tile}"))
    return broken


def loads_a_thread(shader: Shader, constants: tuple[int, ...]) -> list[tuple[str, Fraction]]:
    """(operand, rows one thread loads at once) where the loop does not ask of each row whether it is in the tile."""
    reading = shader.at(constants)
    block = reading.number("BLOCK_SIZE")
    found: list[tuple[str, Fraction]] = []
    for side in "ab":
        rows = reading.number(f"loadstride_{side}")
        if rows is not None and block and not shader.guards_rows(side):
            found.append((side, Fraction(rows, block)))
    return found


def _shared_rules(reading: Reading, device: HostDevice) -> list[BrokenRule]:
    needed = reading.shared_bytes
    if needed is None or needed <= device.shared_bytes:
        return []
    numbers = f"{needed} > {device.shared_bytes}"
    return [BrokenRule("shared bytes of the shader <= the device's, though the host's check passed", numbers, True)]
