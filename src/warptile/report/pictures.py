"""One picture of a report, and the list of all."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from warptile.contracts import UnusableInput
from warptile.record import DeviceRecord
from warptile.report import style
from warptile.trace.spans import Trace


@dataclass(frozen=True)
class Picture:
    """A figure with its words. name: of its file. title, text: what it shows and how to read it. header, rows: the same
    numbers as a table, for those who cannot see the figure or want to check it."""

    name: str
    title: str
    text: str
    svg: str
    png: bytes
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def drawn(
    name: str,
    title: str,
    text: str,
    figure: Figure,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
) -> Picture:
    """The picture of a figure made inside `style.look`."""
    vector, pixels = io.StringIO(), io.BytesIO()
    figure.savefig(vector, format="svg", metadata={"Date": None, "Creator": None})
    figure.savefig(pixels, format="png", dpi=200, metadata={"Software": None})
    # What matplotlib says of itself there are addresses of the web.
    svg = re.sub(r"<metadata>.*?</metadata>", "", vector.getvalue(), flags=re.DOTALL)
    table = tuple(tuple(row) for row in rows)
    return Picture(name, title, text, svg[svg.index("<svg") :], pixels.getvalue(), tuple(header), table)


def pictures_of(device: DeviceRecord, trace: Trace | None = None) -> tuple[Picture, ...]:
    """Every picture that the record of one device allows. trace: of a model on that device.

    Raises UnusableInput where nothing was raced.
    """
    from warptile.report.figures import crossovers, forest, layers, passes, prices, rooflines, spaces

    if not any(m.last_race for m in device.matmuls):
        raise UnusableInput(f"{device.identity.device}: no race is on record, so there is nothing to draw")
    with style.look():
        found = (
            rooflines.picture(device),
            forest.picture(device),
            passes.picture(device),
            None if trace is None else layers.picture(trace),
            crossovers.picture(device),
            spaces.picture(device),
            prices.picture(device),
        )
    return tuple(picture for picture in found if picture is not None)


def write_pngs(pictures: Iterable[Picture], folder: Path) -> list[Path]:
    """Each picture as NAME.png in `folder`, made where missing. Raises UnusableInput where it cannot be written."""
    paths = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for picture in pictures:
            paths.append(folder / f"{picture.name}.png")
            paths[-1].write_bytes(picture.png)
    except OSError as error:
        raise UnusableInput(f"{folder}: cannot be written: {error.strerror or error}") from None
    return paths
