"""Buffers on torch tensors, plain and between guard bands."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from warptile.contracts import OutOfMemory

CANARY_WORD = 0x7FC27FC3
POISON_WORD = 0x7FC17FC1
"""Quiet NaNs as fp32, as each fp16 half and as each bf16 half."""

BAND = 4096
BAND_AFTER = 64 << 10
ALIGN = 512


class TorchBuffer:
    """Bytes [offset, offset + nbytes) of a tensor u8. bands: where canaries lie, in bytes of the tensor."""

    def __init__(self, memory: torch.Tensor, offset: int, nbytes: int, bands: tuple[tuple[int, int], ...] = ()) -> None:
        self.memory: torch.Tensor | None = memory
        self.offset = offset
        self._nbytes = nbytes
        self.bands = bands

    @property
    def nbytes(self) -> int:
        """Extent of the payload."""
        return self._nbytes

    def whole(self) -> torch.Tensor:
        """The tensor behind the payload and its bands. Raises ValueError after it was freed."""
        if self.memory is None:
            raise ValueError("the buffer was freed")
        return self.memory

    def tensor(self) -> torch.Tensor:
        """The payload, u8[nbytes], not a copy. Raises ValueError after it was freed."""
        return self.whole()[self.offset : self.offset + self._nbytes]


def _allocated(nbytes: int, device: torch.device) -> torch.Tensor:
    try:
        return torch.empty(max(nbytes, 1), dtype=torch.uint8, device=device)
    except torch.OutOfMemoryError as error:
        raise OutOfMemory(f"{nbytes} bytes on {device}: {str(error).splitlines()[0]}") from None


def plain(nbytes: int, device: torch.device) -> TorchBuffer:
    """A buffer with undefined content. Raises OutOfMemory."""
    return TorchBuffer(_allocated(nbytes, device), 0, nbytes)


def pattern(word: int, begin: int, end: int, device: torch.device) -> torch.Tensor:
    """Bytes [begin, end) of an endless row of little-endian `word`s that starts at byte 0."""
    first = begin // 4 * 4
    bytes_ = torch.from_numpy(np.array([word], "<u4").view(np.uint8).copy()).to(device)
    return bytes_.repeat(-(-(end - first) // 4))[begin - first : end - first]


def guarded(nbytes: int, at_end: bool, device: torch.device) -> TorchBuffer:
    """A payload of NaN between bands of NaN; with at_end the payload ends the allocation (torch takes blocks of 512
    bytes), and the band before is longer. Raises OutOfMemory."""
    if at_end:
        total = -(-(BAND + nbytes) // ALIGN) * ALIGN
        offset = total - nbytes
        bands: tuple[tuple[int, int], ...] = ((0, offset),)
    else:
        offset = BAND
        total = BAND + -(-nbytes // ALIGN) * ALIGN + BAND_AFTER
        bands = ((0, offset), (offset + nbytes, total))
    memory = _allocated(total, device)
    for begin, end in bands:
        memory[begin:end] = pattern(CANARY_WORD, begin, end, device)
    memory[offset : offset + nbytes] = pattern(POISON_WORD, offset, offset + nbytes, device)
    return TorchBuffer(memory, offset, nbytes, bands)


def intact(buffer: TorchBuffer) -> bool:
    """Whether every canary byte is as it was laid. Raises ValueError for a buffer without guards."""
    if not buffer.bands:
        raise ValueError("the buffer has no guards")
    memory = buffer.whole()
    return all(
        bool(torch.equal(memory[begin:end], pattern(CANARY_WORD, begin, end, memory.device)))
        for begin, end in buffer.bands
    )


def to_tensor(data: NDArray[Any]) -> torch.Tensor:
    """The bytes of `data` in C order, u8, on the host, to be read: those of a mapped file are not copied, and writing
    to them would end the process."""
    flat = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    return torch.from_numpy(flat if flat.flags.writeable else np.asarray(_Borrowed(flat)))


class _Borrowed:
    """An array's memory without its word that it is read-only, which torch has no tensors for."""

    def __init__(self, array: NDArray[np.uint8]) -> None:
        self._array = array
        self.__array_interface__ = array.__array_interface__ | {"data": (array.ctypes.data, False)}
