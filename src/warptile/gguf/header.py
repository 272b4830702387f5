"""The bounded reader of one file's header and tensor directory.

Every count and length is held against the bytes that are left before anything is read or allocated for it, so memory is
bounded by a small multiple of the header's own bytes, whatever its fields claim.
"""

from __future__ import annotations

import itertools
import math
import struct
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from warptile.contracts.errors import UnusableInput
from warptile.gguf.escape import escaped
from warptile.gguf.types import TENSOR_TYPES, type_name

MetadataValue: TypeAlias = "int | float | bool | str | list[str] | npt.NDArray[np.generic]"
"""A value of the metadata: arrays of strings are lists, arrays of numbers are read-only numpy arrays."""

MAX_HEADER_BYTES = 1 << 28
"""Header and directory of real models are below 32 MiB; a header that goes on past this is refused."""

_MAX_DIMENSIONS = 4
_STRING, _ARRAY, _BOOL = 8, 9, 7
_NUMBERS = {0: "u1", 1: "i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?", 10: "<u8", 11: "<i8", 12: "<f8"}
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<B", 10: "<Q", 11: "<q", 12: "<d"}
# Least bytes of an entry: key length, value type, one byte of value; name length, dimension count, one dimension, type,
# offset.
_LEAST_ENTRY, _LEAST_TENSOR = 8 + 4 + 1, 8 + 4 + 8 + 4 + 8


@dataclass(frozen=True)
class TensorInfo:
    """One tensor of the directory.

    shape: in GGUF order, fastest axis first: [k, n] of a matrix, [k, n, experts] of an expert tensor.
    type_name: "type ID" where the id is unknown. offset: bytes from the start of its file, `part` (0 for a file that is
    not split). nbytes: bytes of its data; where the type is unknown, the bytes up to the next tensor or the end.
    """

    name: str
    shape: tuple[int, ...]
    type_id: int
    type_name: str
    offset: int
    nbytes: int
    part: int = 0

    @property
    def known(self) -> bool:
        """Whether the type's block size is known, so that the data can be cut into rows."""
        return self.type_id in TENSOR_TYPES


@dataclass(frozen=True)
class Header:
    """What one file says before its tensor data. `data_offset`: byte at which tensor data starts."""

    version: int
    metadata: dict[str, MetadataValue]
    tensors: dict[str, TensorInfo]
    data_offset: int


class _Cursor:
    """A position in the header's bytes; every read first checks that the bytes are there."""

    def __init__(self, data: memoryview, label: str) -> None:
        self.data = data[:MAX_HEADER_BYTES]
        self.whole = len(data)
        self.label = label
        self.at = 0

    def fail(self, what: str, at: int | None = None) -> NoReturn:
        raise UnusableInput(f"{self.label}: byte {self.at if at is None else at}: {what}")

    def need(self, count: int, what: str) -> None:
        left = len(self.data) - self.at
        if count <= left:
            return
        if self.whole > MAX_HEADER_BYTES:
            self.fail(f"{what} needs {count} bytes, past the {MAX_HEADER_BYTES} bytes a header may have")
        self.fail(f"{what} needs {count} bytes, {left} are left in the file")

    def number(self, code: str, what: str) -> int | float:
        size = struct.calcsize(code)
        self.need(size, what)
        (value,) = struct.unpack_from(code, self.data, self.at)
        self.at += size
        return value  # type: ignore[no-any-return]

    def integer(self, code: str, what: str) -> int:
        return int(self.number(code, what))

    def string(self, what: str) -> str:
        length = self.integer("<Q", f"the length of {what}")
        self.need(length, what)
        self.at += length
        # Vocabularies hold bytes that are not UTF-8; they must not stop the model from opening.
        return str(self.data[self.at - length : self.at], "utf-8", "backslashreplace")

    def strings(self, count: int, what: str) -> list[str]:
        """`count` strings one after another: the loop that a vocabulary of 10^5 strings spends its time in."""
        data, at, size, length_at = self.data, self.at, len(self.data), struct.Struct("<Q").unpack_from
        found = []
        for index in range(count):
            self.at = at
            if at + 8 > size:
                self.need(8, f"the length of element {index} of {what}")
            end = at + 8 + length_at(data, at)[0]
            if end > size:
                self.need(end - at, f"element {index} of {what}")
            found.append(str(data[at + 8 : end], "utf-8", "backslashreplace"))
            at = end
        self.at = at
        return found

    def value(self, key: str) -> MetadataValue:
        what = f"the value of key {escaped(key)}"
        start = self.at
        kind = self.integer("<I", f"the type of key {escaped(key)}")
        if kind == _STRING:
            return self.string(what)
        if kind == _ARRAY:
            return self.array(what)
        if kind not in _SCALARS:
            self.fail(f"{what} has unknown value type {kind}", start)
        value = self.number(_SCALARS[kind], what)
        if kind == _BOOL:
            if value not in (0, 1):
                self.fail(f"{what} is a boolean of value {value}, neither 0 nor 1", start)
            return bool(value)
        return value

    def array(self, what: str) -> MetadataValue:
        start = self.at
        kind = self.integer("<I", f"the element type of {what}")
        count = self.integer("<Q", f"the element count of {what}")
        if kind == _ARRAY:
            self.fail(f"{what} is an array of arrays", start)
        if kind == _STRING:
            self.need(8 * count, f"{what}, {count} strings,")
            return self.strings(count, what)
        if kind not in _NUMBERS:
            self.fail(f"{what} has unknown element type {kind}", start)
        dtype = np.dtype(_NUMBERS[kind])
        self.need(dtype.itemsize * count, f"{what}, {count} elements,")
        stored = np.dtype("u1") if kind == _BOOL else dtype
        values = np.frombuffer(self.data, stored, count, self.at).copy()
        if kind == _BOOL and count and int(values.max()) > 1:
            self.fail(f"{what} has a boolean that is neither 0 nor 1", start)
        values = values.view(dtype)
        values.setflags(write=False)
        self.at += dtype.itemsize * count
        return values


def read_header(data: memoryview, label: str, part: int = 0) -> Header:
    """Header and tensor directory of one GGUF file.

    data: u8, the whole file (mapped, not read). label: how errors name the file. part: recorded in each TensorInfo.
    Raises UnusableInput with what is wrong and at which byte: not GGUF, big-endian, a version other than 2 and 3,
    a count, length or offset past the bytes present, an array of arrays, duplicate keys or tensors, an alignment that
    is not a power of two, a tensor of no elements, whose rows are not whole blocks, or that overlaps another.
    """
    cursor = _Cursor(data, label)
    version = _version(cursor)
    n_tensors = cursor.integer("<Q", "the tensor count")
    n_entries = cursor.integer("<Q", "the metadata count")
    cursor.need(
        n_tensors * _LEAST_TENSOR + n_entries * _LEAST_ENTRY,
        f"the header's claim of {n_entries} metadata entries and {n_tensors} tensors",
    )
    metadata: dict[str, MetadataValue] = {}
    for index in range(n_entries):
        start = cursor.at
        key = cursor.string(f"key {index}")
        if key in metadata:
            cursor.fail(f"key {escaped(key)} appears twice", start)
        metadata[key] = cursor.value(key)
    alignment = _alignment(cursor, metadata)
    directory: dict[str, tuple[int, tuple[int, ...], int, int]] = {}
    for index in range(n_tensors):
        start = cursor.at
        name, shape, type_id, offset = _entry(cursor, index)
        if name in directory:
            cursor.fail(f"tensor {escaped(name)} appears twice", start)
        if offset % alignment:
            cursor.fail(
                f"tensor {escaped(name)}: offset {offset} is not a multiple of the alignment {alignment}", start
            )
        directory[name] = (start, shape, type_id, offset)
    data_offset = -(-cursor.at // alignment) * alignment
    tensors = _place(cursor, directory, data_offset, part)
    return Header(version, metadata, tensors, data_offset)


def _version(cursor: _Cursor) -> int:
    if bytes(cursor.data[:4]) != b"GGUF":
        cursor.fail("not a GGUF file (it does not start with the four bytes GGUF)")
    cursor.at = 4
    version = cursor.integer("<I", "the version")
    swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
    if version & 0xFFFF == 0 and swapped:
        cursor.fail(f"big-endian GGUF (version {swapped}); only little-endian files can be read", 4)
    if version not in (2, 3):
        cursor.fail(f"GGUF version {version}; only versions 2 and 3 can be read", 4)
    return version


def _alignment(cursor: _Cursor, metadata: dict[str, MetadataValue]) -> int:
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or alignment <= 0 or alignment & (alignment - 1):
        shown = "not a number" if not isinstance(alignment, int) else alignment
        cursor.fail(f"general.alignment is {shown}, not a power of two")
    return alignment


def _entry(cursor: _Cursor, index: int) -> tuple[str, tuple[int, ...], int, int]:
    start = cursor.at
    name = cursor.string(f"the name of tensor {index}")
    what = f"tensor {escaped(name)}"
    dimensions = cursor.integer("<I", f"the dimension count of {what}")
    if not 1 <= dimensions <= _MAX_DIMENSIONS:
        cursor.fail(f"{what} has {dimensions} dimensions, not 1 to {_MAX_DIMENSIONS}", start)
    shape = tuple(cursor.integer("<Q", f"the shape of {what}") for _ in range(dimensions))
    if 0 in shape:
        cursor.fail(f"{what} has no elements, its shape is {list(shape)}", start)
    type_id = cursor.integer("<I", f"the type of {what}")
    offset = cursor.integer("<Q", f"the offset of {what}")
    kind = TENSOR_TYPES.get(type_id)
    if kind and shape[0] % kind.block_size:
        cursor.fail(f"{what}: k = {shape[0]} is not a multiple of {kind.name}'s block of {kind.block_size}", start)
    return name, shape, type_id, offset


def _place(
    cursor: _Cursor, directory: dict[str, tuple[int, tuple[int, ...], int, int]], data_offset: int, part: int
) -> dict[str, TensorInfo]:
    """Offsets from the file's start, sizes, and the checks that need all tensors: inside the file, no overlap."""
    starts = sorted({offset for _, _, _, offset in directory.values()})
    following = dict(itertools.pairwise([*starts, max(cursor.whole - data_offset, 0)]))
    tensors = {}
    for name, (at, shape, type_id, offset) in directory.items():
        kind = TENSOR_TYPES.get(type_id)
        size = math.prod(shape) // kind.block_size * kind.block_bytes if kind else following[offset] - offset
        end = data_offset + offset + size
        what = f"tensor {escaped(name)}"
        if end > cursor.whole or size < 1:
            cursor.fail(f"{what} ends at byte {max(end, data_offset + offset + 1)}, the file has {cursor.whole}", at)
        tensors[name] = TensorInfo(name, shape, type_id, type_name(type_id), data_offset + offset, size, part)
    previous: TensorInfo | None = None
    for tensor in sorted(tensors.values(), key=lambda t: (t.offset, t.nbytes)):
        if previous and tensor.offset < previous.offset + previous.nbytes:
            at = directory[tensor.name][0]
            cursor.fail(f"tensor {escaped(tensor.name)} overlaps tensor {escaped(previous.name)}", at)
        previous = tensor
    return tensors
