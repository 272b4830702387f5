"""The two folders warptile writes to. Passed as an argument, never read from globals."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from warptile.contracts.errors import UnusableInput


@dataclass(frozen=True)
class Places:
    """cache: compiled code, safe to delete. state: journals, tables and locks, which are worth keeping."""

    cache: Path
    state: Path

    @classmethod
    def default(cls) -> Places:
        """The user's own folders by the platform's rules (`XDG_CACHE_HOME`, `XDG_STATE_HOME` on Linux)."""
        import platformdirs

        return cls(
            Path(platformdirs.user_cache_dir("warptile", appauthor=False)),
            Path(platformdirs.user_state_dir("warptile", appauthor=False)),
        )

    @classmethod
    def under(cls, folder: Path | str) -> Places:
        """Both inside one folder."""
        return cls(Path(folder) / "cache", Path(folder) / "state")

    def ready(self) -> Places:
        """Create both folders and check that files can be written there. Raises UnusableInput naming the folder."""
        for word, folder in (("cache", self.cache), ("state", self.state)):
            try:
                folder.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryFile(dir=folder):
                    pass
            except OSError as error:
                reason = os.strerror(error.errno) if error.errno else str(error)
                raise UnusableInput(f"{word} folder {folder} cannot be written: {reason}") from None
        return self
