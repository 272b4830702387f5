"""Sources of llama.cpp's Vulkan back end, from source packages of llama-cpp-python: fetched once, by their hash, never
committed. They lie in pytest's cache folder, which git ignores.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
import tempfile
import urllib.request
from pathlib import Path

PACKAGE = "llama-cpp-python"
HASHES = {
    "0.3.36": "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e",
    "0.2.42": "31236d67424d2694c5c40fffea0930cbbdaa5862f35404664df43d87a3bd8c27",
}
WANTED = ("ggml-vulkan", "vulkan-shaders/", "/ggml.h")
SECONDS = 60


class Unreachable(Exception):
    """The package index cannot be reached; `str` says why."""


def sources(version: str, cache: Path) -> Path:
    """The folder of llama.cpp as `version` carries it, Vulkan back end and ggml.h only. Raises Unreachable."""
    folder = cache / f"{PACKAGE}-{version}"
    if not (folder / "whole").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        with tempfile.TemporaryFile() as archive:
            _fetch(version, archive)
            with tarfile.open(fileobj=archive, mode="r:gz") as packed:
                for member in packed:
                    inside = member.name.partition("/vendor/llama.cpp/")[2]
                    if member.isfile() and any(part in f"/{inside}" for part in WANTED) and inside:
                        member.name = inside
                        packed.extract(member, folder, filter="data")
        (folder / "whole").touch()
    return folder


def _fetch(version: str, archive: object) -> None:
    try:
        from pip._internal.models.index import PyPI
    except ImportError as error:
        raise Unreachable(f"pip is not installed: {error}") from None
    asked = urllib.request.Request(
        f"{PyPI.simple_url}/{PACKAGE}/", headers={"Accept": "application/vnd.pypi.simple.v1+json"}
    )
    digest = hashlib.sha256()
    try:
        with urllib.request.urlopen(asked, timeout=SECONDS) as answer:
            files = json.load(answer)["files"]
        name = f"{PACKAGE.replace('-', '_')}-{version}.tar.gz"
        url = next(file["url"] for file in files if file["filename"] == name)
        with urllib.request.urlopen(url, timeout=SECONDS) as stream:
            while part := stream.read(1 << 20):
                digest.update(part)
                archive.write(part)  # type: ignore[attr-defined]
    except (OSError, ValueError) as error:
        raise Unreachable(f"{PACKAGE} {version} cannot be fetched: {error}") from None
    assert digest.hexdigest() == HASHES[version], f"{PACKAGE} {version} is not the file that was pinned"
    archive.seek(0)  # type: ignore[attr-defined]
