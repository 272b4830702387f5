"""The folders warptile writes to. Passed as an argument, never read from globals."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from warptile.contracts.errors import UnusableInput

MACHINE_LOCKS = Path("/tmp/warptile-locks")
"""Where every process of the machine locks a device, whatever its folders and its user."""


@dataclass(frozen=True)
class Places:
    """cache: compiled code, safe to delete. state: journals and tables, which are worth keeping. locks: one file a
    device, the same folder for all processes that must not time each other."""

    cache: Path
    state: Path
    locks: Path = field(default_factory=lambda: MACHINE_LOCKS)

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
