"""Where the time of a traced prefill and token goes by layer."""

from __future__ import annotations

import re
from collections import defaultdict

from warptile.report import style
from warptile.report.pictures import Picture, drawn
from warptile.trace.spans import Trace, merged

TEXT = (
    "Device time of a traced prefill and of one decoded token, by layer; dark: inside quantized matmuls, pale: the"
    " rest."
)


def picture(trace: Trace) -> Picture:
    """Seconds by layer of the model, matmuls and the rest apart, a panel a phase."""
    sums: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(lambda: [0.0, 0.0]))
    for span in merged(trace.spans, ("phase", "layer", "matmul")):
        sums[span.phase][_layer(span.layer)][0 if span.matmul else 1] += span.seconds * 1e3
    figure, all_axes = style.stacked([0.7 + 0.17 * len(layers) for layers in sums.values()])
    rows = []
    for axes, (phase, layers) in zip(all_axes, sums.items(), strict=True):
        names = sorted(layers, key=_in_order)
        inside, rest = ([layers[name][which] for name in names] for which in (0, 1))
        axes.barh(names, inside, color=style.BLUE, label="quantized matmuls")
        axes.barh(names, rest, left=inside, color="white", edgecolor=style.BLUE, hatch="....", label="the rest")
        axes.set(ylim=(len(names) - 0.4, -0.6), xlabel="ms")
        axes.tick_params(axis="y", labelsize=7)
        axes.grid(axis="y", visible=False)
        axes.set_title(f"{phase}: {sum(inside) + sum(rest):.3g} ms traced")
        rows += [(phase, name, f"{layers[name][0]:.3g} ms", f"{layers[name][1]:.3g} ms") for name in names]
    all_axes[0].legend(loc="lower right")
    return drawn("layers", "Time by layer", TEXT, figure, ("phase", "layer", "matmuls", "the rest"), rows)


def _layer(path: str) -> str:
    """ "model.layers.3.mlp" as "layer 3"; other modules by their last name; outside modules "other"."""
    found = re.search(r"layers\.(\d+)", path)
    return f"layer {found[1]}" if found else path.rpartition(".")[2] or "other"


def _in_order(name: str) -> tuple[int, int, str]:
    number = name.removeprefix("layer ")
    return (0, int(number), "") if name.startswith("layer ") and number.isdecimal() else (1, 0, name)
