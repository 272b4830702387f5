"""Whether the core installs on a board: every core dependency, and what those need, as a wheel for 64-bit Arm Linux.

    python benchmarks/aarch64_wheels.py [--python 3.11] [--json FILE]

pip resolves and downloads the wheels into a temporary folder; nothing is installed or run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

PLATFORMS = ("manylinux_2_28_aarch64", "manylinux_2_27_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64")
PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def resolve(requirement: str, python: str, folder: Path, needs: bool) -> tuple[bool, str]:
    """(whether wheels were found, pip's last line)."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", "--dest", str(folder)]
    command += ["--python-version", python, "--implementation", "cp"]
    command += [word for platform in PLATFORMS for word in ("--platform", platform)]
    command += [] if needs else ["--no-deps"]
    done = subprocess.run([*command, requirement], capture_output=True, text=True, check=False)
    lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    return done.returncode == 0, lines[-1] if lines else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default="3.11")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for requirement in tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]["dependencies"]:
            found, why = resolve(requirement, given.python, Path(folder), needs=True)
            alone = found or resolve(requirement, given.python, Path(folder), needs=False)[0]
            state = "ok" if found else ("wheel, but not all that it needs" if alone else "no wheel")
            rows.append({"requirement": requirement, "state": state, "why": why})
            print(f"{requirement:24} {state}  {why[:120]}")
        print(f"{len(list(Path(folder).glob('*.whl')))} wheels, for Python {given.python}")
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))
    sys.exit(any(row["state"] != "ok" for row in rows))


if __name__ == "__main__":
    main()
