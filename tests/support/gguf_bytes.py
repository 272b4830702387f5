"""A GGUF writer of raw bytes: it can write what a well-behaved writer refuses to."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

SCALARS = {
    "u8": (0, "<B"),
    "i8": (1, "<b"),
    "u16": (2, "<H"),
    "i16": (3, "<h"),
    "u32": (4, "<I"),
    "i32": (5, "<i"),
    "f32": (6, "<f"),
    "bool": (7, "<B"),
    "u64": (10, "<Q"),
    "i64": (11, "<q"),
    "f64": (12, "<d"),
}


@dataclass(frozen=True)
class RawTensor:
    """A directory entry and its bytes. shape in GGUF order; offset None: the next aligned one."""

    name: str
    shape: tuple[int, ...]
    type_id: int
    data: bytes = b""
    offset: int | None = None


def string(text: str | bytes) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def value(kind: str, content: object) -> bytes:
    """A typed value: kind is a key of SCALARS, "str", "strings", or "KIND[]" for an array of numbers."""
    if kind == "str":
        return struct.pack("<I", 8) + string(content)  # type: ignore[arg-type]
    if kind == "strings":
        return struct.pack("<IIQ", 9, 8, len(content)) + b"".join(string(s) for s in content)  # type: ignore
    if kind.endswith("[]"):
        code, fmt = SCALARS[kind[:-2]]
        return struct.pack("<IIQ", 9, code, len(content)) + b"".join(struct.pack(fmt, v) for v in content)  # type: ignore
    code, fmt = SCALARS[kind]
    return struct.pack("<I", code) + struct.pack(fmt, content)


def entry(key: str | bytes, kind: str, content: object) -> bytes:
    return string(key) + value(kind, content)


def gguf_bytes(
    entries: Sequence[bytes] = (),
    tensors: Sequence[RawTensor] = (),
    *,
    version: int = 3,
    alignment: int = 32,
    n_entries: int | None = None,
    n_tensors: int | None = None,
) -> bytes:
    """A whole file. n_entries, n_tensors: what the header claims, where it shall lie."""
    head = b"GGUF" + struct.pack(
        "<IQQ",
        version,
        len(tensors) if n_tensors is None else n_tensors,
        len(entries) if n_entries is None else n_entries,
    )
    head += b"".join(entries)
    data = b""
    for tensor in tensors:
        data += b"\0" * (-len(data) % alignment)
        offset = len(data) if tensor.offset is None else tensor.offset
        data += tensor.data
        head += string(tensor.name) + struct.pack("<I", len(tensor.shape))
        head += struct.pack(f"<{len(tensor.shape)}Q", *tensor.shape) + struct.pack("<IQ", tensor.type_id, offset)
    return head + b"\0" * (-len(head) % alignment) + data


def random_bytes(count: int, seed: int = 0) -> bytes:
    blocks: npt.NDArray[np.uint8] = np.random.default_rng(seed).integers(0, 256, count, np.uint8)
    return blocks.tobytes()
