"""A GGUF file's architecture keys, read with the type they must have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from warptile.contracts import UnusableInput
from warptile.gguf import GGUFFile
from warptile.gguf.escape import escaped, shown


@dataclass(frozen=True)
class Keys:
    """Keys of `file` below its architecture's name; every refusal names the file and the key."""

    file: GGUFFile

    @property
    def where(self) -> str:
        """The file, for a message."""
        return shown(self.file.path)

    @property
    def architecture(self) -> str:
        """`general.architecture`. Raises UnusableInput where it is missing."""
        found = self.file.metadata.get("general.architecture")
        if not isinstance(found, str):
            raise UnusableInput(f"{self.where}: no general.architecture in the metadata: not a language model's file")
        return found

    def whole(self, name: str, default: int | None = None) -> int:
        """A whole number. Raises UnusableInput where it is missing without a default, or one a layer."""
        found = self._find(name, default)
        if type(found) is not int:
            raise UnusableInput(
                f"{self.where}: {self._full(name)} is not one whole number; per-layer values are not supported"
            )
        return found

    def real(self, name: str, default: float | None = None) -> float:
        """A number. Raises UnusableInput where it is missing without a default."""
        found = self._find(name, default)
        if type(found) not in (int, float):
            raise UnusableInput(f"{self.where}: {self._full(name)} is not a number")
        return float(found)

    def text(self, name: str, default: str) -> str:
        """A string."""
        return str(self._find(name, default))

    def token(self, name: str) -> int | None:
        """`tokenizer.ggml.NAME_token_id`, None where the file has none."""
        found = self.file.metadata.get(f"tokenizer.ggml.{name}_token_id")
        return found if type(found) is int else None

    def has(self, name: str) -> bool:
        """Whether the key is there."""
        return self._full(name) in self.file.metadata

    def _full(self, name: str) -> str:
        return f"{escaped(self.architecture)}.{name}"

    def _find(self, name: str, default: Any) -> Any:
        found = self.file.metadata.get(f"{self.architecture}.{name}", default)
        if found is None:
            raise UnusableInput(f"{self.where}: {self._full(name)} is missing from the metadata")
        return found
