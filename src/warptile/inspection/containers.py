"""What lies inside a file: SPIR-V, CUDA images, AMD code objects and the bundles that hold them.

Sources: the ELF specification; Clang's "Clang Offload Bundler" page for `__CLANG_OFFLOAD_BUNDLE__` (u64 count, then
u64 offset, u64 size, u64 length and text of each entry's triple) and its compressed form `CCOB`.
"""

from __future__ import annotations

import importlib
import io
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warptile.contracts import MissingExtra, UnusableInput

EM_CUDA, EM_AMDGPU = 190, 224
SPIRV_MAGIC = b"\x03\x02\x23\x07"
_FATBIN_MAGIC = struct.pack("<I", 0xBA55ED50)
_BUNDLE, _COMPRESSED = b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"
_MOST_BYTES = 1 << 32
_ZLIB, _ZSTD = 0, 1


@dataclass(frozen=True)
class Content:
    """kind: "SPIR-V", "CUDA" or "AMD". code_objects: for AMD, (target, ELF) of each kernel image in the file."""

    kind: str
    container: str
    code_objects: tuple[tuple[str, bytes], ...] = ()


def contents(path: Path) -> list[Content]:
    """What compiled GPU code a file holds. Raises UnusableInput where it holds none that is known, or is broken."""
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UnusableInput(f"{path}: {error.strerror}") from None
    if len(data) > _MOST_BYTES:
        raise UnusableInput(f"{path}: larger than {_MOST_BYTES >> 30} GiB")
    if data[:4] == SPIRV_MAGIC:
        return [Content("SPIR-V", "SPIR-V module")]
    if data[:4] == _FATBIN_MAGIC:
        return [Content("CUDA", "CUDA fat binary")]
    if data.startswith((_BUNDLE, _COMPRESSED)):
        return [Content("AMD", "offload bundle", _unbundled(data, path))]
    if data[:4] != b"\x7fELF":
        raise UnusableInput(f"{path}: neither SPIR-V, a fat binary, an offload bundle nor ELF")
    return _elf(data, path)


def target_of(triple: str) -> str:
    """The processor and its features in a target triple: "gfx90a:sramecc+:xnack-"."""
    found = re.search(r"gfx\w+(?::\S+)?$", triple)
    return found[0] if found else triple


def open_elf(data: bytes, path: Path) -> Any:
    """pyelftools' view of an ELF image. Raises MissingExtra, UnusableInput."""
    elffile, exceptions = _package("elftools.elf.elffile"), _package("elftools.common.exceptions")
    try:
        return elffile.ELFFile(io.BytesIO(data))
    except (exceptions.ELFError, exceptions.ELFParseError, ValueError, KeyError) as error:
        raise UnusableInput(f"{path}: broken ELF: {error}") from None


def _elf(data: bytes, path: Path) -> list[Content]:
    elf = open_elf(data, path)
    machine = elf.header["e_machine"]
    if machine in (EM_CUDA, "EM_CUDA"):
        return [Content("CUDA", "cubin")]
    if machine in (EM_AMDGPU, "EM_AMDGPU"):
        return [Content("AMD", "AMD code object", (("", data),))]
    found = []
    try:
        for name in (".nv_fatbin", "__nv_relfatbin"):
            if elf.get_section_by_name(name) is not None:
                found.append(Content("CUDA", f"{name} of a host library"))
                break
        bundles = elf.get_section_by_name(".hip_fatbin")
        if bundles is not None:
            found.append(Content("AMD", ".hip_fatbin of a host library", _unbundled(bundles.data(), path)))
    except _package("elftools.common.exceptions").ELFError as error:
        raise UnusableInput(f"{path}: broken ELF: {error}") from None
    if not found:
        raise UnusableInput(f"{path}: an ELF file without GPU code (no .nv_fatbin, .hip_fatbin, cubin or AMD code)")
    return found


def _unbundled(data: bytes, path: Path) -> tuple[tuple[str, bytes], ...]:
    found: list[tuple[str, bytes]] = []
    try:
        for bundle in _bundles(data, path):
            found += [(target, image) for target, image in _entries(bundle) if image[:4] == b"\x7fELF"]
    except (struct.error, zlib.error, ValueError, UnicodeDecodeError) as error:
        raise UnusableInput(f"{path}: broken offload bundle: {error}") from None
    return tuple(found)


def _bundles(data: bytes, path: Path) -> Iterator[bytes]:
    """Each bundle of a section, decompressed; the linker pads between them."""
    at = 0
    while at < len(data):
        nexts = [place for magic in (_BUNDLE, _COMPRESSED) if (place := data.find(magic, at)) >= 0]
        if not nexts:
            return
        at = min(nexts)
        if data.startswith(_BUNDLE, at):
            yield data[at:]
            at += max((end for _, end in _spans(data[at:])), default=len(_BUNDLE))
        else:
            raw, size = _decompressed(data[at:], path)
            yield raw
            at += size


def _decompressed(data: bytes, path: Path) -> tuple[bytes, int]:
    """(bundle, bytes that its compressed form takes). Header: magic, u16 version, u16 method, sizes, u64 hash."""
    version, method = struct.unpack_from("<HH", data, 4)
    if version == 1:
        total, plain, start = len(data), struct.unpack_from("<I", data, 8)[0], 20
    elif version == 2:
        (total, plain), start = struct.unpack_from("<II", data, 8), 24
    elif version == 3:
        (total, plain), start = struct.unpack_from("<QQ", data, 8), 32
    else:
        raise UnusableInput(f"{path}: compressed offload bundle of unknown version {version}")
    if plain > _MOST_BYTES or total > len(data) or total <= start:
        raise UnusableInput(f"{path}: compressed offload bundle states sizes {total}, {plain} that cannot be")
    packed = data[start:total]
    if method == _ZSTD:
        zstandard = _package("zstandard")
        try:
            raw = zstandard.ZstdDecompressor().decompress(packed, max_output_size=plain)
        except zstandard.ZstdError as error:
            raise UnusableInput(f"{path}: broken offload bundle: {error}") from None
    elif method == _ZLIB:
        raw = zlib.decompressobj().decompress(packed, plain)
    else:
        raise UnusableInput(f"{path}: offload bundle compressed by unknown method {method}")
    if len(raw) != plain:
        raise UnusableInput(f"{path}: offload bundle of {len(raw)} bytes states {plain}")
    return raw, total


def _headers(bundle: bytes) -> Iterator[tuple[str, int, int]]:
    at = len(_BUNDLE)
    (count,) = struct.unpack_from("<Q", bundle, at)
    if count > 4096:
        raise ValueError(f"{count} entries")
    at += 8
    for _ in range(count):
        offset, size, length = struct.unpack_from("<QQQ", bundle, at)
        triple = bundle[at + 24 : at + 24 + length].decode("ascii")
        if offset + size > len(bundle):
            raise ValueError(f"{triple} ends past the bundle")
        at += 24 + length
        yield triple, offset, size


def _spans(bundle: bytes) -> list[tuple[int, int]]:
    return [(offset, offset + size) for _, offset, size in _headers(bundle)]


def _entries(bundle: bytes) -> Iterator[tuple[str, bytes]]:
    if not bundle.startswith(_BUNDLE):
        raise ValueError("no bundle inside")
    for triple, offset, size in _headers(bundle):
        if size and not triple.startswith("host"):
            yield target_of(triple), bundle[offset : offset + size]


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise MissingExtra("reading compiled GPU code", "inspect") from None
