"""The report's page: one HTML file that needs nothing else, readable on a phone, in print and by a screen reader."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from importlib import resources

from warptile import words
from warptile.gguf.escape import printable
from warptile.record import DeviceRecord
from warptile.report.pictures import Picture
from warptile.roofline import arithmetic
from warptile.trace.spans import Trace


def page(parts: Sequence[tuple[DeviceRecord, Sequence[Picture]]], version: str, made: str, trace: Trace | None) -> str:
    """The whole page of one or several devices. version: of warptile; made: when. trace: whose picture is in it."""
    style = resources.files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    body = "\n".join(_device(device, pictures, number) for number, (device, pictures) in enumerate(parts, start=1))
    names = ", ".join(dict.fromkeys(device.identity.device for device, _ in parts))
    traced = "" if trace is None else f" Trace: {_text(trace.model)} on {_text(trace.device)}."
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        # Nothing on the page may ask for anything from anywhere, whatever text it was made of.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>warptile: {_text(names)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>Quantized matmuls of {_text(names)}</h1>\n"
        f'<p class="made">Made by warptile {_text(version)} from its journal, {_text(made)}.{traced}</p>\n'
        f"{body}\n</main>\n</body>\n</html>\n"
    )


def _device(device: DeviceRecord, pictures: Iterable[Picture], number: int) -> str:
    identity = device.identity
    raced = [m for m in device.matmuls if m.last_race is not None]
    accepted = sum(m.accepted for m in raced)
    facts = [
        ("device", f"{identity.device} through {identity.runtime}"),
        ("driver", identity.driver),
        ("compiler", identity.compiler),
        (
            "matmuls",
            f"{len(raced)} raced; a faster tile was accepted for {accepted}, the stock tile stays for the others",
        ),
    ]
    if device.ceilings is not None:
        top = device.ceilings
        facts.append(
            (
                "ceilings",
                f"{words.significant(top.read_bytes_per_s / 1e9)} GB/s read, {words.rate(top.flops_per_s)}"
                f" {arithmetic(identity.runtime)}, empty launch {words.duration(top.empty_launch_s)}, measured on it",
            )
        )
    if device.older:
        facts.append(("left out", f"{device.older} races under earlier drivers or compilers"))
    listed = "".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in facts)
    figures = "\n".join(_figure(picture, number) for picture in pictures)
    name = f"{_text(identity.device)} through {_text(identity.runtime)}"
    return f"<section>\n<h2>{name}</h2>\n<dl>{listed}</dl>\n{figures}\n</section>"


def _figure(picture: Picture, number: int) -> str:
    name = f"{picture.name}-{number}"
    # Ids of several figures share one page; matplotlib's hash makes them repeat from figure to figure.
    svg = (
        picture.svg.replace('id="', f'id="{name}-')
        .replace('href="#', f'href="#{name}-')
        .replace("url(#", f"url(#{name}-")
    )
    svg = svg.replace("<svg ", f'<svg role="img" aria-labelledby="{name}-title" ', 1)
    head = "".join(f'<th scope="col">{_text(each)}</th>' for each in picture.header)
    rows = "".join("<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>\n" for row in picture.rows)
    table = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table>"
    return (
        f'<figure>\n<h3 id="{name}-title">{_text(picture.title)}</h3>\n{svg}\n'
        f"<figcaption>{_text(picture.text)}</figcaption>\n"
        f'<details><summary>The numbers</summary>\n<div class="wide">{table}</div></details>\n</figure>'
    )


def _text(value: str) -> str:
    """Outside text as it is: never markup, unprintable characters escaped."""
    return html.escape(printable(value))
