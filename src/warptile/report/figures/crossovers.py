"""Which kernel is fastest at which m."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from warptile import words
from warptile.contracts import Problem
from warptile.record import DeviceRecord
from warptile.report import style
from warptile.report.pictures import Picture, drawn

PANELS = 6
TEXT = (
    "Each kernel's best measured tile at each number of tokens M, in seconds over the fastest of all at that M."
    " Where another line comes down to 1 there is a cross-over. Screened times count: what is served was also raced."
)


def picture(device: DeviceRecord) -> Picture | None:
    """Slowdown of each kernel's best tile against the best of all, over m, a panel a matmul; None where no matmul was
    timed at two numbers of tokens with two kernels."""
    best: dict[Problem, dict[int, dict[str, tuple[float, str]]]] = defaultdict(dict)
    for matmul in device.matmuls:
        kernels: dict[str, tuple[float, str]] = {}
        for tried in matmul.tried:
            if tried.seconds is not None and tried.kernel not in kernels:
                kernels[tried.kernel] = (tried.seconds, tried.tile)
        if kernels:
            best[replace(matmul.problem, m=0)][matmul.problem.m] = kernels
    worth = {
        p: ms
        for p, ms in best.items()
        if len(ms) > 1 and len({kernel for found in ms.values() for kernel in found}) > 1
    }
    if not worth:
        return None
    shown = sorted(worth, key=lambda p: -p.n * p.k)[:PANELS]
    names = sorted({kernel for p in shown for found in worth[p].values() for kernel in found})
    figure, all_axes = style.stacked([2.0] * len(shown))
    rows = []
    for axes, problem in zip(all_axes, shown, strict=True):
        ms = sorted(worth[problem])
        for index, kernel in enumerate(names):
            colour, marker = style.CYCLE[index % len(style.CYCLE)]
            at = [m for m in ms if kernel in worth[problem][m]]
            slow = [worth[problem][m][kernel][0] / min(s for s, _ in worth[problem][m].values()) for m in at]
            if at:
                axes.plot(at, slow, marker=marker, color=colour, label=kernel.split(".", 1)[-1])
                rows += [
                    (words.matmul(problem), str(m), kernel, f"{s:.2f}x", words.tile(worth[problem][m][kernel][1]))
                    for m, s in zip(at, slow, strict=True)
                ]
        axes.set(xscale="log", yscale="log", ylabel="over the fastest")
        axes.minorticks_off()
        axes.set_xticks(ms, [str(m) for m in ms])
        low, high = axes.get_ylim()
        axes.set_ylim(min(low, 0.95), max(high, 1.5))
        style.log_ticks(axes.yaxis, most=6)
        axes.set_title(words.matmul(problem))
    all_axes[-1].set_xlabel("tokens M")
    handles = {
        name: handle for axes in all_axes for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(list(handles.values()), list(handles), loc="outside upper left", ncols=3)
    header = ("matmul", "M", "kernel", "over the fastest", "its best tile")
    return drawn("crossovers", "Cross-overs by kernel", TEXT, figure, header, sorted(rows))
