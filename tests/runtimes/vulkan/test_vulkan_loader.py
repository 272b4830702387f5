"""A machine without Vulkan, without a device or without a layer gets one line that says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from warptile.contracts import UnusableInput
from warptile.places import Places
from warptile.runtimes import open_device

_OPEN = """
import sys
from warptile.contracts import UnusableInput
from warptile.places import Places
from warptile.runtimes import open_device, survey
try:
    open_device("vulkan:0", Places.under(sys.argv[1]))
except UnusableInput as error:
    print(error)
    print(*(reason for _, reason in survey().reasons), sep="\\n")
"""

_NO_LOADER = """
import importlib
real = importlib.import_module
def refuse(name, package=None):
    if name == "vulkan":
        raise OSError("Cannot find Vulkan SDK version")
    return real(name, package)
importlib.import_module = refuse
from warptile.runtimes.vulkan import embedded
embedded.find = lambda: None
"""


def said(code: str, tmp_path: Path, **environment: str) -> list[str]:
    merged = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    command = [sys.executable, "-c", code, str(tmp_path)]
    return subprocess.run(command, env=merged, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize("icd", ["absent", "broken"])
def test_a_loader_without_a_device_says_where_to_look(tmp_path: Path, icd: str) -> None:
    path = tmp_path / "icd.json"
    if icd == "broken":
        library = {"library_path": "/nonexistent/libvulkan_none.so", "api_version": "1.3.0"}
        path.write_text(json.dumps({"file_format_version": "1.0.0", "ICD": library}))
    lines = said(_OPEN, tmp_path, VK_DRIVER_FILES=str(path), VK_ICD_FILENAMES=str(path))
    assert lines[0].startswith("the Vulkan loader reports no device")
    assert lines[0] in lines[1:]


def test_no_loader_says_what_to_install(tmp_path: Path) -> None:
    lines = said(_NO_LOADER + _OPEN, tmp_path, VK_DRIVER_FILES="", VK_ICD_FILENAMES="")
    assert lines[0].startswith("no Vulkan loader (libvulkan.so.1)")
    assert lines[0] in lines[1:]


def test_validation_without_the_layer_is_refused(software_device: str, tmp_path: Path) -> None:
    code = _OPEN.replace("Places.under(sys.argv[1]))", "Places.under(sys.argv[1]), validation=True)")
    lines = said(code, tmp_path, VK_LAYER_PATH=str(tmp_path))
    assert lines[0] == "validation was asked for, but VK_LAYER_KHRONOS_validation is not installed"


@pytest.mark.parametrize("text", ["vulkan:99", "vulkan:no such card"])
def test_a_device_that_is_not_there_is_answered_with_those_that_are(
    text: str, software_device: str, places: Places
) -> None:
    with pytest.raises(UnusableInput, match=f"no device {text}; there is: .*{software_device} "):
        open_device(text, places)


@pytest.mark.parametrize("text", ["cuda-ish:0", "", "llvmpipe"])
def test_an_unknown_prefix_lists_the_known_ones(text: str, places: Places) -> None:
    with pytest.raises(UnusableInput, match=r"no known prefix; write one of .*vulkan:0"):
        open_device(text, places)
