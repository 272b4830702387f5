"""The software driver that set-up unpacks: found, made whole, loaded, and refused with one line otherwise."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from warptile.contracts.errors import UnusableInput
from warptile.runtimes.vulkan import embedded

LVP = "libvulkan_lvp.so"
DRIVER_VARIABLES = ("LD_LIBRARY_PATH", "VK_DRIVER_FILES", "VK_ICD_FILENAMES")


def whole(folder: Path) -> Path:
    (folder / "unpacked.json").write_text('{"packages": []}')
    (folder / "lvp_icd.json").write_text('{"ICD": {}}')
    return folder


def libraries(folder: Path) -> Path:
    found = folder / "root/usr/lib/x86_64-linux-gnu"
    found.mkdir(parents=True)
    return found


def tool(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_it_is_looked_for_beside_the_environment(tmp_path: Path) -> None:
    prefix = tmp_path / ".venv"
    assert embedded.find(prefix) is None
    (tmp_path / ".lavapipe").mkdir()
    assert embedded.find(prefix) is None, "a folder that was not filled to the end is none"
    whole(tmp_path / ".lavapipe")
    assert embedded.find(prefix) == tmp_path / ".lavapipe"


def test_a_folder_that_is_not_whole_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VK_DRIVER_FILES", "before")
    with pytest.raises(UnusableInput, match="holds no unpacked Vulkan driver"):
        embedded.activate(tmp_path)
    whole(tmp_path)
    with pytest.raises(UnusableInput, match=f"holds no {LVP}"):
        embedded.activate(tmp_path)
    (libraries(tmp_path) / LVP).write_bytes(b"not a library")
    with pytest.raises(UnusableInput, match=f"{LVP} cannot be loaded: .*(invalid ELF header|file too short)"):
        embedded.activate(tmp_path)
    assert os.environ["VK_DRIVER_FILES"] == "before"


def test_no_apt_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnusableInput, match="no apt-get to fetch a software one"):
        embedded.unpack(tmp_path / "d")
    assert embedded.find(tmp_path / ".venv") is None


@pytest.mark.parametrize(
    ("apt", "message"),
    [
        ('case "$*" in *install*) echo "E: Unable to locate x" >&2; exit 100;; esac', "apt-get failed: E: Unable"),
        ("exit 0", "offer no package mesa-vulkan-drivers"),
    ],
)  # fmt: skip
def test_what_apt_refuses_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], apt: str, message: str
) -> None:
    tool(tmp_path, "apt-get", apt)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(UnusableInput, match=message):
        embedded.unpack(tmp_path / "d")
    monkeypatch.setattr(embedded, "devices", lambda folder=None, software=False: ())
    assert embedded.main([str(tmp_path / "d")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_unpacking_leaves_the_folders_other_files_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FOLDER is an argument: naming the wrong one must not cost its content."""
    (tmp_path / "precious").write_text("kept")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "stale").write_text("gone")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UnusableInput):
        embedded.unpack(tmp_path)
    assert (tmp_path / "precious").read_text() == "kept"
    assert not (tmp_path / "root").exists()


APT = """echo "$@" >> asked
for word in "$@"; do case "$word" in
  Dir::Cache=*) archives="${word#Dir::Cache=}/archives";;
  --download-only) cd "$archives"; touch libvulkan1_1_amd64.deb mesa-vulkan-drivers_2_amd64.deb libc6_2_amd64.deb;;
esac; done"""

DPKG = """echo "$2" >> unpacked
mkdir -p "$3/usr/lib/x86_64-linux-gnu" "$3/usr/share/vulkan/icd.d"
touch "$3/usr/lib/x86_64-linux-gnu/libvulkan_lvp.so" "$3/usr/lib/x86_64-linux-gnu/libvulkan_radeon.so"
echo '{"ICD": {"library_path": "/usr/lib/libvulkan_lvp.so"}}' > "$3/usr/share/vulkan/icd.d/lvp_icd.json"
"""


def test_packages_become_a_driver_that_can_be_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins for apt and dpkg put down what the packages hold."""
    tool(tmp_path, "apt-get", APT)
    tool(tmp_path, "dpkg", DPKG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    folder = tmp_path / ".lavapipe"
    assert embedded.unpack(folder) == ("libvulkan1_1_amd64.deb", "mesa-vulkan-drivers_2_amd64.deb")
    assert "libc6" not in (tmp_path / "unpacked").read_text(), "a process cannot take a second C library"
    manifest = json.loads((folder / "lvp_icd.json").read_text())
    assert manifest["ICD"]["library_path"] == f"./root/usr/lib/x86_64-linux-gnu/{LVP}"
    assert not list(folder.rglob("libvulkan_radeon.so"))
    assert not (folder / "apt").exists()
    assert embedded.find(tmp_path / ".venv") == folder
    for line in (tmp_path / "asked").read_text().splitlines():
        assert f"Dir::State={folder}/apt/state" in line, "apt must not write outside the folder"
        assert f"Dir::Cache={folder}/apt/cache" in line


def unpacked_or_installed(folder: Path) -> Path | None:
    """The project's own unpacked driver, or one put together from the installed one."""
    if (own := embedded.find()) is not None:
        return own
    drivers = sorted(Path("/usr/lib").glob(f"*-linux-gnu*/{LVP}"))
    if not drivers:
        return None
    target = libraries(folder)
    shutil.copy(drivers[0], target / LVP)
    loader = sorted(drivers[0].parent.glob("libvulkan.so.1.*"))
    if loader:
        shutil.copy(loader[-1], target / loader[-1].name)
    whole(folder)
    manifest = {"file_format_version": "1.0.0", "ICD": {"api_version": "1.1.0"}}
    manifest["ICD"]["library_path"] = f"./{(target / LVP).relative_to(folder)}"  # type: ignore[index]
    (folder / "lvp_icd.json").write_text(json.dumps(manifest))
    return folder


USE = """
import json, pathlib, sys
from warptile.runtimes.vulkan import embedded
folder = pathlib.Path(sys.argv[1])
embedded.activate(folder)
embedded.activate(folder)
print(embedded.chosen_here())
print(json.dumps(embedded._device_names()))
print([line.split()[-1] for line in open("/proc/self/maps") if "libvulkan_lvp" in line][0])
"""


def test_a_process_runs_on_the_unpacked_driver(tmp_path: Path) -> None:
    folder = unpacked_or_installed(tmp_path)
    if folder is None:
        pytest.skip("this machine has a Vulkan driver other than lavapipe, so none was unpacked")
    environment = {key: value for key, value in os.environ.items() if key not in DRIVER_VARIABLES}
    environment["MESA_SHADER_CACHE_DIR"] = str(tmp_path / "cache")
    done = subprocess.run(
        [sys.executable, "-c", USE, str(folder)],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
        timeout=120,
    )
    chosen, names, library = done.stdout.splitlines()
    assert chosen == "True"
    assert "llvmpipe" in names
    assert library == str(folder / library.partition(f"{folder}/")[2]), "the folder's driver, not the system's"
    assert embedded.devices(folder) == embedded.devices(folder, software=True) == tuple(n for n, _ in json.loads(names))


def test_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert embedded.main([]) == 2
    assert embedded.main(["--what"]) == 2
    assert "usage:" in capsys.readouterr().err
