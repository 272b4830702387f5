"""Opening a model: one file, or all the parts of a split one."""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from warptile.contracts.errors import UnusableInput
from warptile.gguf.escape import escaped, shown
from warptile.gguf.header import Header, MetadataValue, TensorInfo, read_header
from warptile.gguf.types import TENSOR_TYPES

_PART = re.compile(r"(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.DOTALL)


@dataclass(frozen=True)
class GGUFFile:
    """An opened model.

    path: as it was given. parts: the files it lies in, in order. metadata: the first part's.
    tensors: name -> TensorInfo over all parts, in file order.
    """

    path: Path
    parts: tuple[Path, ...]
    metadata: dict[str, MetadataValue]
    tensors: dict[str, TensorInfo]
    _maps: tuple[npt.NDArray[np.uint8], ...] = field(repr=False, compare=False)

    def tensor(self, name: str) -> TensorInfo:
        """The directory's entry. Raises UnusableInput where the file has no such tensor."""
        if name not in self.tensors:
            raise UnusableInput(f"{shown(self.path)}: no tensor is named {escaped(name)}")
        return self.tensors[name]

    def blocks(self, name: str) -> npt.NDArray[np.uint8]:
        """A tensor's bytes, memory-mapped and read-only.

        u8[n, row_bytes] with row_bytes = k / block_size * block_bytes; u8[1, row_bytes] of a vector; outer axes of
        tensors with more dimensions come first: u8[experts, n, row_bytes].
        Raises UnusableInput for an unknown name, and for a type whose block size is unknown.
        """
        info = self.tensor(name)
        kind = TENSOR_TYPES.get(info.type_id)
        if kind is None:
            raise UnusableInput(
                f"{shown(self.path)}: tensor {escaped(name)} has {info.type_name}, whose block size is unknown"
            )
        outer = tuple(reversed(info.shape[1:])) or (1,)
        data = self._maps[info.part][info.offset : info.offset + info.nbytes]
        return data.reshape(*outer, info.shape[0] // kind.block_size * kind.block_bytes)


def open_gguf(path: str | Path) -> GGUFFile:
    """Open a GGUF model; tensor data is mapped, not read.

    A part of a split model (`NAME-00001-of-00003.gguf`, key `split.count`) opens all parts, whichever was named.
    Raises UnusableInput where a file is missing, no regular file or unreadable, where a header is not usable
    (see `read_header`), or where the parts of a split model do not belong together.
    """
    given = Path(path)
    data = _map(given)
    header = read_header(data.data, shown(given))
    count = _split_number(header, "split.count", given)
    if count is None or count <= 1:
        return GGUFFile(given, (given,), header.metadata, header.tensors, (data,))
    parts = _part_paths(given, count)
    maps = tuple(_map(part) for part in parts)
    headers = [
        read_header(mapped.data, shown(part), index)
        for index, (part, mapped) in enumerate(zip(parts, maps, strict=True))
    ]
    return GGUFFile(given, parts, headers[0].metadata, _join(parts, headers), maps)


def _map(path: Path) -> npt.NDArray[np.uint8]:
    label = shown(path)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise UnusableInput(f"{label}: not a regular file")
        if not status.st_size:
            raise UnusableInput(f"{label}: byte 0: not a GGUF file (it is empty)")
        return np.memmap(path, np.uint8, mode="r").view(np.ndarray)
    except OSError as error:
        raise UnusableInput(f"{label}: cannot be opened: {error.strerror or error}") from error
    except ValueError as error:  # a NUL in the path, or a file that was cut between stat and map
        raise UnusableInput(f"{label}: cannot be opened: {error}") from error


def _split_number(header: Header, key: str, path: Path) -> int | None:
    value = header.metadata.get(key)
    if value is None or (type(value) is int and value >= 0):
        return value
    raise UnusableInput(f"{shown(path)}: key {key} is not a count")


def _part_paths(given: Path, count: int) -> tuple[Path, ...]:
    """Paths of all parts, the one given among them; every one exists."""
    label = shown(given)
    match = _PART.fullmatch(given.name)
    if match is None:
        raise UnusableInput(
            f"{label}: one of {count} parts, but its name does not end in -NNNNN-of-{count:05d}.gguf: "
            "the other parts cannot be found"
        )
    if int(match["count"]) != count:
        raise UnusableInput(f"{label}: split.count is {count}, its name says {int(match['count'])} parts")
    parts = []
    for number in range(1, count + 1):
        part = given.with_name(f"{match['stem']}-{number:05d}-of-{match['count']}.gguf")
        if not part.exists():
            raise UnusableInput(f"{shown(part)}: missing, part {number} of the {count} that {label} belongs to")
        parts.append(part)
    return tuple(parts)


def _join(parts: tuple[Path, ...], headers: list[Header]) -> dict[str, TensorInfo]:
    """One directory of all parts, after checking that they say the same about the split."""
    tensors: dict[str, TensorInfo] = {}
    total = _split_number(headers[0], "split.tensors.count", parts[0])
    for index, (path, header) in enumerate(zip(parts, headers, strict=True)):
        for key, expected in (("split.count", len(parts)), ("split.no", index), ("split.tensors.count", total)):
            found = _split_number(header, key, path)
            if found != expected:
                raise UnusableInput(f"{shown(path)}: {key} is {found}, where {expected} was expected")
        for name, info in header.tensors.items():
            if name in tensors:
                first = shown(parts[tensors[name].part])
                raise UnusableInput(f"{shown(path)}: tensor {escaped(name)} is already in {first}")
            tensors[name] = info
    if total is not None and total != len(tensors):
        raise UnusableInput(f"{shown(parts[0])}: split.tensors.count is {total}, the parts hold {len(tensors)}")
    return tensors
