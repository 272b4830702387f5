"""What a part of a tile's work costs: the same text with something left out, or in another order."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from vulkan_parts.bench import Arm, Bench
from warptile import kernels
from warptile.contracts import CandidateRejected, Problem
from warptile.contracts.runtime import sample_dtype

WITHOUT = {
    "decode": [
        (
            "    const f16vec2 s = unpackFloat2x16(scale);\n",
            "    const f16vec2 s = f16vec2(1.0hf);\n    if (scale != 1u) return uvec2("
            "octet_nibbles(o, h, 0u) | 0x2c002c00u, octet_nibbles(o, h, 1u) | 0x2c002c00u);\n",
        )
    ],
    "scale loads": [("s_ahead[i] = load_scale_words(", "s_ahead[i].w[0] = (")],
    "scale arithmetic": [
        (
            "Scale own = scale_of(",
            "Scale own; own.d[0] = own.m[0] = float(s_ahead[i].w[0]); if (P.k == 7u) own = scale_of(",
        )
    ],
    "x": [
        (
            "XUnit read_x(uint row, uint unit) { return XUnit(X[row * (P.k / 8u) + unit]); }",
            "XUnit read_x(uint row, uint unit) { return XUnit(uvec4(row, unit, row, unit)); }",
        )
    ],
    "weights": [
        (
            "        load_octets4(w_row[i], min(chunk, last_chunk), lane_j, P.rows, o);",
            "        o[0].p0[0] = chunk; o[1].p0[0] = chunk + w_row[i]; o[2].p0[0] = lane_j;"
            " o[3].p0[0] = lane_j + chunk;",
        ),
        ("= load_octet(row, chunk, w_octet(at) + q, P.rows);", "= Octet(uint[1](row + chunk * q));"),
    ],
    "barriers": [("        barrier();\n", "")],
    "store of x": [
        ("[[unroll]] for (uint i = 0u; i < X_EACH; ++i) {\n        uint at = i * THREADS + tid, unit = at",
         "if (P.k == 7u) [[unroll]] for (uint i = 0u; i < X_EACH; ++i) {\n"
         "        uint at = i * THREADS + tid, unit = at"),
        ("            pool[base + at / UNITS * ROW + at % UNITS] = x_pairs",
         "            if (P.k == 7u) pool[base + at / UNITS * ROW + at % UNITS] = x_pairs"),
    ],
}  # fmt: skip
"""What is taken out of a kernel's text, to see what it costs: results are wrong, and only differences mean anything."""

_PRODUCTS = """\
        B_MATRIX b[MATRICES_N];
        [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j) { DECODE(b[j], j, h) }
        [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j)
            [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i)
                sums[i * MATRICES_N + j] = coopMatMulAdd(a[i], b[j], sums[i * MATRICES_N + j]);
"""
_DECODED_BETWEEN = """\
        [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j) {
            B_MATRIX b;
            DECODE(b, j, h)
            [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i)
                sums[i * MATRICES_N + j] = coopMatMulAdd(a[i], b, sums[i * MATRICES_N + j]);
        }
"""
ARRANGED = {
    "stored before the products": [("if (t == 1u) {", "if (t == 0u) {")],
    "stored after half of them": [("if (t == 1u) {", "if (t == CHUNKS) {")],
    "decoded between products": [(_PRODUCTS, _DECODED_BETWEEN)],
}
"""Other orders of the same work: results stay right."""


def part_variants(bench: Bench, best: Sequence[Arm], problem: Problem, x: Any, y: Any, want: np.ndarray) -> None:
    """The fastest tiles with something left out or done in another order, in the same rounds."""
    device, limits = bench.device, bench.device.limits()
    coop = kernels.by_name("vulkan.mul_mm_coop")
    for arm in best:
        tile = arm.tile
        source = coop.source(tile, problem, limits)
        arms = [Arm(tile, arm.launches, {"part": "without", "m": problem.m, "tile": tile.text(), "change": "nothing"})]
        for name, edits in [*WITHOUT.items(), *ARRANGED.items()]:
            changed = source.text
            for text, instead in edits:
                changed = changed.replace(text, instead)
            if changed == source.text or (name in ARRANGED and any(text not in source.text for text, _ in edits)):
                continue
            row: dict[str, Any] = {"part": "without", "m": problem.m, "tile": tile.text(), "change": name}
            try:
                binary = device.compile(dataclasses.replace(source, text=changed))
                launches = [coop.launch(binary, tile, problem, x, weights, y) for weights in bench.weights]
                device.execute(launches[0])
            except CandidateRejected as error:
                print(f"  {name}: {error}", flush=True)
                continue
            found = device.resources(binary)
            if found is not None:
                row |= {"registers": found.registers, "shared": found.shared_bytes, "spill": found.spill_bytes}
            got = device.download(y, sample_dtype(problem.y_dtype), want.shape).astype(np.float32)
            row["nmse"] = float(np.square(got - want, dtype=np.float64).sum() / np.square(want, dtype=np.float64).sum())
            arms.append(Arm(tile, launches, row))
        # Clocks fall while the host compiles; rounds of a few milliseconds do not raise them again.
        bench.warm(arm.launches[0])
        bench.rounds(arms, 7)
        print(f"  {tile.text()}")
        for found_arm in arms:
            r = found_arm.row
            bench.rows.append(r)
            print(f"    {r['us']:8.1f} us  {r['change']}  registers {r.get('registers')} spill {r.get('spill')} "
                  f"nmse {r.get('nmse', 0):.1e}", flush=True)  # fmt: skip
