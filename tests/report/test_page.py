"""The page must hold everything it needs, whatever a device or a model calls itself, and read on a phone."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.record.test_matmuls import tuned
from warptile.cli import run
from warptile.contracts import Ceilings, UnusableInput
from warptile.record import DeviceRecord, records_of
from warptile.report import Picture, page, pictures_of, style
from warptile.report.figures import rooflines
from warptile.trace.spans import Span, Trace

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
TRACE = Trace(
    "m<b>odel",
    "dev",
    8,
    Ceilings(1e10, 1e11, 1e-5),
    {"prefill": 1.0, "decode": 0.1},
    (
        Span("prefill", "mul_mm", "model.layers.0.mlp", 2, 0.5, matmul="Q4_1 n=576 k=576 m=8"),
        Span("prefill", "softmax", "model.layers.0.attn", 1, 0.2),
        Span("decode", "mul_mat_vec", "lm_head", 1, 0.05, matmul="Q8_0 n=4096 k=576 m=1"),
    ),
)


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> DeviceRecord:
    return records_of(tuned(tmp_path_factory.mktemp("tuned")))[0]


@pytest.fixture(scope="module")
def pictures(device: DeviceRecord) -> tuple[Picture, ...]:
    return pictures_of(device, TRACE)


def test_every_picture_comes_with_its_numbers(pictures: tuple[Picture, ...]) -> None:
    assert [p.name for p in pictures] == ["roofline", "forest", "matmuls", "layers", "space", "prices"]
    for picture in pictures:
        assert picture.png.startswith(b"\x89PNG")
        assert picture.rows
        assert {len(row) for row in picture.rows} == {len(picture.header)}
    forest = next(p for p in pictures if p.name == "forest")
    assert all(row[2].startswith("1") and row[5] == "accept" for row in forest.rows)  # 16 times faster


def test_a_page_asks_for_nothing_and_obeys_no_name(device: DeviceRecord, pictures: tuple[Picture, ...]) -> None:
    evil = replace(device, identity=replace(device.identity, device="<script>alert(1)</script>\x1b[31m"))
    text = page([(evil, pictures), (device, pictures)], "1", "today", TRACE)
    assert "<script" not in text
    assert "\x1b" not in text
    assert "&lt;script&gt;" in text
    assert "m&lt;b&gt;odel" in text
    assert "default-src 'none'" in text
    namespaces = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert set(re.findall(r"https?://[^\s\"'<)]+", text)) <= namespaces
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids)), "two figures share an id, so one would use the other's marks"
    assert set(re.findall(r'href="#([^"]+)"', text)) | set(re.findall(r"url\(#([^)]+)\)", text)) <= set(ids)


def test_nothing_raced_is_said_so(device: DeviceRecord) -> None:
    with pytest.raises(UnusableInput, match="no race is on record"):
        pictures_of(replace(device, matmuls=()))


def test_the_same_record_gives_the_same_pictures(device: DeviceRecord, pictures: tuple[Picture, ...]) -> None:
    with style.look():
        assert rooflines.picture(device) == pictures[0]


def test_the_verb_writes_a_page_and_pngs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tuned(tmp_path)
    state, out = str(tmp_path / "state"), tmp_path / "page.html"
    assert run(["report", "--state", state, "--out", str(out), "--png", str(tmp_path / "png")]) == 0
    assert "<svg" in out.read_text()
    assert {p.name for p in (tmp_path / "png").iterdir()} >= {"roofline.png", "forest.png"}
    capsys.readouterr()
    for words, line in (
        (["--device", "nobody"], "no device 'nobody' is on record; there are Fake One (fake)"),
        (["--trace", str(out)], "not a file of `trace --json`"),
        (["--out", str(tmp_path / "none" / "p.html")], "cannot be written"),
    ):
        assert run(["report", "--state", state, "--out", str(out), *words]) == 2
        assert line in capsys.readouterr().err
    assert run(["report", "--state", str(tmp_path / "empty")]) == 2
    assert "no race is on record" in capsys.readouterr().err


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_on_a_phone_nothing_is_cut_and_print_has_every_picture(
    device: DeviceRecord, pictures: tuple[Picture, ...], tmp_path: Path
) -> None:
    text = page([(device, pictures)], "1", "today", TRACE)
    probe = "<script>document.title = document.documentElement.scrollWidth + ' ' + innerWidth</script></body>"
    measured = re.sub(r"<meta http-equiv[^>]*>", "", text).replace("</body>", probe)
    (tmp_path / "page.html").write_text(measured)
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    command = [str(CHROMIUM), *flags, f"--user-data-dir={tmp_path / 'chromium'}"]
    file = (tmp_path / "page.html").as_uri()
    words = [*command, "--window-size=500,900", "--dump-dom", file]
    dom = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout
    found = re.search(r"<title>(\d+) (\d+)</title>", dom)
    assert found is not None
    assert int(found[1]) <= int(found[2]), "the page is wider than the screen"
    subprocess.run(
        [*command, f"--print-to-pdf={tmp_path / 'page.pdf'}", file], capture_output=True, timeout=60, check=True
    )
    assert (tmp_path / "page.pdf").read_bytes().count(b"/Type /Page\n") >= 2
