"""The software driver: Mesa's lavapipe, unpacked into a folder where a machine has no Vulkan device.

`python -m warptile.runtimes.vulkan.embedded FOLDER` makes sure that a Vulkan device can be had: the system's, or else
lavapipe from the distribution's own packages (Debian, Ubuntu), fetched by apt with lists and caches of its own inside
FOLDER and unpacked there. It needs no rights and installs nothing. With `--software` a graphics card is not enough.
`activate(FOLDER)` lets a process use it.

    FOLDER/root/            the packages' files
    FOLDER/lvp_icd.json     driver manifest for the Vulkan loader
    FOLDER/cache/           shaders that the driver has compiled
    FOLDER/unpacked.json    names of the packages; written last, so its presence means that the folder is whole
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from warptile.contracts.errors import UnusableInput

FOLDER_NAME = ".lavapipe"
_PACKAGES = ("mesa-vulkan-drivers", "libvulkan1")
_DRIVER = "libvulkan_lvp.so"
# The process already runs on the C library and cannot take a second one.
_NEVER_UNPACKED = ("libc6", "libc-bin")
_INDEX_WORDS = (
    "Acquire::Languages=none",
    "Acquire::Retries=3",
    "Acquire::http::Timeout=60",
    "Acquire::https::Timeout=60",
)
# Hooks of the system's apt configuration act on the system's own caches.
_NO_HOOKS = "".join(f"#clear {name};\n" for name in (
    "APT::Update::Pre-Invoke", "APT::Update::Post-Invoke", "APT::Update::Post-Invoke-Success",
    "DPkg::Pre-Invoke", "DPkg::Post-Invoke", "DPkg::Pre-Install-Pkgs",
))  # fmt: skip


def find(prefix: str | Path | None = None) -> Path | None:
    """The unpacked driver beside a virtual environment: `.lavapipe` in the folder that holds it.

    prefix: the environment, by default this process's `sys.prefix`. None where there is none or it is not whole.
    """
    folder = Path(sys.prefix if prefix is None else prefix).absolute().parent / FOLDER_NAME
    return folder if (folder / "unpacked.json").is_file() else None


def activate(folder: Path) -> None:
    """Make the driver in `folder` the one that this process, and what it starts, loads.

    Loads the folder's libraries so that later loads by their short name (the `vulkan` package's of libvulkan.so.1, the
    loader's of the driver, the driver's of LLVM) find them, and names the driver in VK_DRIVER_FILES. To be called
    before the first Vulkan instance, in every process.
    Raises UnusableInput where the folder is not whole or does not load.
    """
    manifest = (folder / "lvp_icd.json").absolute()
    if not manifest.is_file():
        raise UnusableInput(f"{folder}: holds no unpacked Vulkan driver")
    _preload(folder)
    os.environ["VK_DRIVER_FILES"] = os.environ["VK_ICD_FILENAMES"] = str(manifest)
    # Unless the user has said where, compiled shaders are kept with the driver that compiled them.
    os.environ.setdefault("MESA_SHADER_CACHE_DIR", str(manifest.with_name("cache")))


def chosen_here() -> bool:
    """Whether VK_DRIVER_FILES names an unpacked driver, as in a process started by one that activated it."""
    named = os.environ.get("VK_DRIVER_FILES", "")
    return Path(named).name == "lvp_icd.json" and Path(named).with_name("unpacked.json").is_file()


def unpack(folder: Path) -> tuple[str, ...]:
    """Fetch lavapipe, the Vulkan loader and what of their dependencies is not installed, and unpack them.

    Returns the packages' file names. Raises UnusableInput without apt, and where it cannot fetch or unpack them.
    """
    folder = folder.absolute()
    try:
        private = folder / "apt"
        for name in ("unpacked.json", "lvp_icd.json"):
            (folder / name).unlink(missing_ok=True)
        for old in (private, folder / "root"):
            shutil.rmtree(old, ignore_errors=True)
        for name in ("state/lists/partial", "cache/archives/partial", "log"):
            (private / name).mkdir(parents=True)
        debs = _fetch(private)
        root = folder / "root"
        for deb in debs:
            _run("dpkg", "-x", str(deb), str(root))
        _write_manifest(folder, root)
        names = tuple(deb.name for deb in debs)
        shutil.rmtree(private)
        (folder / "unpacked.json").write_text(json.dumps({"packages": names}, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise UnusableInput(f"{folder}: cannot be filled: {error}") from error
    return names


def devices(folder: Path | None = None, *, software: bool = False) -> tuple[str, ...]:
    """Names of the Vulkan devices that a fresh process sees: the system's, or with the driver in `folder`.

    software: only those that are no hardware. Asked of a process of its own: a driver that crashes gives no device.
    """
    command = [sys.executable, "-m", __spec__.name, "--devices", *([str(folder)] if folder else [])]
    environment = {**os.environ, "MESA_SHADER_CACHE_DISABLE": "true"}
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=environment)
    if answer.returncode:
        return ()
    return tuple(
        name for name, is_software in json.loads(answer.stdout.splitlines()[-1]) if is_software or not software
    )


def ensure(folder: Path, *, software: bool = False) -> str:
    """Make sure that there is a Vulkan device, unpacking one into `folder` where needed; says which in one line.

    software: a software device is wanted, whatever hardware there is. Raises UnusableInput where none can be had.
    """
    if names := devices(software=software):
        return f"Vulkan device: {', '.join(names)}"
    if (folder / "unpacked.json").is_file() and (names := devices(folder)):
        return f"Vulkan device: {', '.join(names)}, unpacked in {folder}"
    kind = "software Vulkan" if software else "Vulkan"
    print(f"no {kind} device found; unpacking Mesa's lavapipe into {folder}", flush=True)
    packages = unpack(folder)
    names = devices(folder)
    if not names:
        raise UnusableInput(f"{folder}: the unpacked driver gives no device ({', '.join(packages)})")
    return f"Vulkan device: {', '.join(names)}, unpacked in {folder}"


def _fetch(private: Path) -> list[Path]:
    """The .deb files, in apt's archive folder under `private`."""
    if shutil.which("apt-get") is None:
        raise UnusableInput("no Vulkan device, and no apt-get to fetch a software one: install a Vulkan driver")
    hooks = private / "no-hooks.conf"
    hooks.write_text(_NO_HOOKS, encoding="utf-8")
    words = [
        f"Dir::State={private / 'state'}",
        f"Dir::Cache={private / 'cache'}",
        f"Dir::Log={private / 'log'}",
        "Debug::NoLocking=true",
        "APT::Sandbox::User=",
        *_INDEX_WORDS,
    ]
    apt = ["apt-get", "-q", "-y", "-c", str(hooks), *(part for word in words for part in ("-o", word))]
    # One unreachable repository among the system's sources fails an update that fetched all that is needed here.
    _run(*apt, "update", check=False)
    install = ("install", "--download-only", "--reinstall", "--no-install-recommends")
    _run(*apt, *install, *_PACKAGES)
    debs = sorted((private / "cache" / "archives").glob("*.deb"))
    for package in _PACKAGES:
        if not any(deb.name.startswith(f"{package}_") for deb in debs):
            raise UnusableInput(f"no Vulkan device, and apt's sources offer no package {package} to unpack one from")
    return [deb for deb in debs if deb.name.split("_")[0] not in _NEVER_UNPACKED]


def _run(*command: str, check: bool = True) -> None:
    environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, env=environment)
    if check and done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith(("E:", "dpkg"))] or ["no message"]
        raise UnusableInput(f"unpacking a Vulkan driver: {Path(command[0]).name} failed: {lines[0]}")


def _libraries(folder: Path) -> list[Path]:
    """Shared libraries directly in the unpacked library folders, each file once."""
    found = [*folder.glob("root/usr/lib/*-linux-gnu*/*.so*"), *folder.glob("root/lib/*-linux-gnu*/*.so*")]
    return sorted(path.absolute() for path in found if path.is_file() and not path.is_symlink())


def _write_manifest(folder: Path, root: Path) -> None:
    """The driver's manifest, with a library path that holds wherever the folder is; drops other drivers and layers."""
    libraries = {path.name: path for path in _libraries(folder)}
    if _DRIVER not in libraries:
        raise UnusableInput(f"{folder}: the packages hold no {_DRIVER}")
    for name, path in libraries.items():
        if name.startswith(("libvulkan_", "libVkLayer_")) and name != _DRIVER:
            path.unlink()
    for original in root.glob("usr/share/vulkan/icd.d/lvp_icd*.json"):
        manifest = json.loads(original.read_text(encoding="utf-8"))
        # The loader takes a relative path from the manifest's own folder.
        manifest["ICD"]["library_path"] = f"./{libraries[_DRIVER].relative_to(folder)}"
        (folder / "lvp_icd.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        return
    raise UnusableInput(f"{folder}: the packages hold no manifest of lavapipe")


def _preload(folder: Path) -> None:
    """Load every unpacked library, in whatever order their dependencies allow."""
    pending = _libraries(folder)
    if not any(path.name == _DRIVER for path in pending):
        raise UnusableInput(f"{folder}: holds no {_DRIVER}")
    failed: dict[Path, OSError] = {}
    while pending:
        failed = {}
        for path in pending:
            try:
                ctypes.CDLL(str(path))
            except OSError as refusal:
                failed[path] = refusal
        if len(failed) == len(pending):
            break
        pending = list(failed)
    for path, reason in failed.items():
        if path.name == _DRIVER or path.name.startswith("libvulkan.so"):
            raise UnusableInput(f"{folder}: {path.name} cannot be loaded: {reason}")


def _device_names() -> list[tuple[str, bool]]:
    """(name, whether it is software) of each device in this process; none without a loader or a driver."""
    try:
        vk = importlib.import_module("vulkan")
    except OSError:
        return []
    application = vk.VkApplicationInfo(apiVersion=vk.VK_MAKE_VERSION(1, 1, 0))
    try:
        instance = vk.vkCreateInstance(vk.VkInstanceCreateInfo(pApplicationInfo=application), None)
    except vk.VkErrorIncompatibleDriver:
        return []
    found = [vk.vkGetPhysicalDeviceProperties(device) for device in vk.vkEnumeratePhysicalDevices(instance)]
    return [(str(one.deviceName), one.deviceType == vk.VK_PHYSICAL_DEVICE_TYPE_CPU) for one in found]


def main(arguments: list[str]) -> int:
    """`FOLDER [--software]`: ensure a device, say which. `--devices [FOLDER]`: this process's, as JSON. 2: refused."""
    options = {word for word in arguments if word.startswith("-")}
    folders = [Path(word) for word in arguments if not word.startswith("-")]
    try:
        if options == {"--devices"} and len(folders) <= 1:
            for folder in folders:
                activate(folder)
            print(json.dumps(_device_names()))
        elif options <= {"--software"} and len(folders) == 1:
            print(ensure(folders[0], software="--software" in options))
        else:
            print("usage: python -m warptile.runtimes.vulkan.embedded FOLDER [--software]", file=sys.stderr)
            return 2
    except UnusableInput as error:
        print(f"warptile: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
