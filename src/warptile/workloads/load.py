"""A workload from whatever names one."""

from __future__ import annotations

from pathlib import Path

from warptile.contracts.errors import UnusableInput
from warptile.contracts.problem import Workload
from warptile.gguf.escape import shown
from warptile.workloads.model import from_gguf
from warptile.workloads.shape_files import from_shapes, shape_names


def load(path_or_name: str | Path) -> Workload:
    """`from_gguf` of a model, `from_shapes` of a `.toml` file or of a shipped shape file's name.

    A model is told by the suffix `.gguf`, or, where a file has neither suffix, by its first four bytes (models in
    content-addressed stores have none). Raises UnusableInput where it is none of these, and as the two functions do.
    """
    path = Path(path_or_name)
    suffix = path.suffix.lower()
    if suffix == ".gguf":
        return from_gguf(path)
    if suffix == ".toml" or str(path_or_name) in shape_names():
        return from_shapes(path_or_name)
    if _is_model(path):
        return from_gguf(path)
    raise UnusableInput(
        f"{shown(path)}: neither a .gguf model, a .toml shape file, nor one of the shipped shapes "
        f"({', '.join(shape_names())})"
    )


def _is_model(path: Path) -> bool:
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(4) == b"GGUF"
    except (OSError, ValueError) as error:
        raise UnusableInput(f"{shown(path)}: cannot be opened: {error}") from error
