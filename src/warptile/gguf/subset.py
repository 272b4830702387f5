"""A GGUF file of one tensor, for a machine that measures it without the model. Source: the GGUF specification, v3."""

from __future__ import annotations

import contextlib
import os
import struct
import tempfile
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

_ALIGNMENT = 32


def write_tensor(path: Path, name: str, type_id: int, n: int, k: int, blocks: NDArray[Any]) -> None:
    """Write w[n, k] of a GGML type, blocks u8[n, row bytes] as in the model's file, by an atomic replace.

    Raises OSError where the folder cannot be written.
    """
    text = name.encode()
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0)
    head += struct.pack("<Q", len(text)) + text + struct.pack("<IQQIQ", 2, k, n, type_id, 0)
    head += bytes(-len(head) % _ALIGNMENT)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(head)
            blocks.tofile(file)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
