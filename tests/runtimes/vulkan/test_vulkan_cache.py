"""What lies on disk is used when it is whole, rebuilt when it is not, and never trusted on its name alone."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from support.shaders import scale

from warptile.contracts import CompileFailed, Launch, UnusableInput
from warptile.places import Places
from warptile.runtimes import open_device
from warptile.runtimes.files import read_checked, write_checked
from warptile.runtimes.vulkan.runtime import VulkanRuntime
from warptile.runtimes.vulkan.spirv import Glslang, first_error

SHADER = "#version 450\nlayout(local_size_x = 1) in;\nvoid main() {}\n"
MAGIC = bytes.fromhex("03022307")


def only_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def test_spirv_is_compiled_once_and_read_back(tmp_path: Path) -> None:
    glslang = Glslang(tmp_path, (1, 3))
    words = glslang.compile(SHADER)
    assert words.startswith(MAGIC)
    path = only_file(tmp_path)
    # A whole file under the right name is used as it is: that is what "cached" means.
    write_checked(path, b"another program")
    assert glslang.compile(SHADER) == b"another program"


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "foreign"])
def test_a_damaged_cache_file_is_compiled_again(tmp_path: Path, damage: str) -> None:
    glslang = Glslang(tmp_path, (1, 3))
    words = glslang.compile(SHADER)
    path = only_file(tmp_path)
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[-5] ^= 1
    path.write_bytes({"flip": bytes(content), "cut": bytes(content[:-4]), "empty": b"", "foreign": words}[damage])
    assert glslang.compile(SHADER) == words
    assert read_checked(path) == words


def test_another_text_or_vulkan_version_is_another_entry(tmp_path: Path) -> None:
    Glslang(tmp_path, (1, 3)).compile(SHADER)
    Glslang(tmp_path, (1, 1)).compile(SHADER)
    Glslang(tmp_path, (1, 3)).compile(SHADER + "// more\n")
    assert len(list(tmp_path.iterdir())) == 3


def test_a_failed_compile_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(CompileFailed):
        Glslang(tmp_path, (1, 3)).compile("#version 450\nvoid main() { x = 1; }\n")
    assert not list(tmp_path.iterdir())


def test_the_reported_line_is_the_first_error_not_the_summary() -> None:
    output = (
        "/tmp/a/kernel.comp\nERROR: /tmp/a/kernel.comp:7: 'x' : undeclared identifier \nERROR: 1 compilation errors."
    )
    assert first_error(output) == "ERROR: line 7: 'x' : undeclared identifier"


def use(runtime: VulkanRuntime) -> float:
    x, y = runtime.upload(np.full(8, 3, np.float32)), runtime.guarded_buffer(32)
    runtime.execute([Launch(runtime.compile(scale(9)), (x, y), (8, 0), (1, 1, 1))])
    return float(runtime.download(y, np.float32, (8,))[7])


def test_a_corrupt_pipeline_cache_is_ignored_and_replaced(software_device: str, tmp_path: Path) -> None:
    places = Places.under(tmp_path)
    runtime = open_device(software_device, places)
    assert use(runtime) == 27  # type: ignore[arg-type]
    runtime.close()
    path = only_file(places.cache / "vulkan" / "pipelines")
    whole = read_checked(path)
    assert whole
    path.write_bytes(b"\xff" * 4096)
    runtime = open_device(software_device, places)
    assert use(runtime) == 27  # type: ignore[arg-type]
    runtime.close()
    assert read_checked(path) == whole


def test_a_folder_that_cannot_be_written_is_one_line(software_device: str, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(UnusableInput, match=f"cache folder {blocked} cannot be written"):
        open_device(software_device, Places(blocked, tmp_path / "state"))
    with pytest.raises(UnusableInput, match=r"state folder /proc/.* cannot be written"):
        open_device(software_device, Places(tmp_path / "cache", Path("/proc/warptile")))


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_read_only_cache_folder_is_one_line(software_device: str, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o555)
    with pytest.raises(UnusableInput, match="cannot be written: Permission denied"):
        open_device(software_device, Places(folder, tmp_path / "state"))
