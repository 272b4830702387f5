"""Whether a model fits the memory there is, before anything of it is loaded."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from warptile.contracts import UnusableInput
from warptile.gguf.escape import shown
from warptile.model.tensors import FLOAT_BYTES, ModelTensors

if TYPE_CHECKING:
    import torch

PACKED_SHARE = 1.04
"""A packed weight's bytes over its file's, at most; grid formats, which are unfolded, take up to twice the file's."""

UNFOLDED_SHARE = 2.0
_GRIDS = ("IQ1_", "IQ2_", "IQ3_")


def needed_bytes(tensors: ModelTensors, dense: bool, item: int) -> int:
    """Bytes of the model's weights: packed, or decoded to `item` bytes each."""
    total = 0.0
    for info in tensors.file.tensors.values():
        count = 1
        for length in info.shape:
            count *= length
        if dense or info.type_name in FLOAT_BYTES:
            total += count * item
        else:
            total += info.nbytes * (UNFOLDED_SHARE if info.type_name.startswith(_GRIDS) else PACKED_SHARE)
    return int(total)


def refuse_too_large(tensors: ModelTensors, device: str, dense: bool, dtype: torch.dtype | None) -> None:
    """Raises UnusableInput, naming both sizes, where the weights exceed the free memory of the card or of the host."""
    card = device.partition(":")[0] in ("cuda", "hip")
    item = dtype.itemsize if dtype is not None else 2 if card else 4
    needed = needed_bytes(tensors, dense, item)
    free = _card_bytes(device) if card else _host_bytes()
    if free is not None and needed > free:
        where = f"{device} has" if card else "this machine has"
        raise UnusableInput(
            f"{shown(tensors.file.path)}: its weights take {_size(needed)} "
            f"{'decoded' if dense else 'packed'}, {where} {_size(free)} free"
        )


def _size(nbytes: int) -> str:
    return f"{nbytes / 1e9:.1f} GB" if nbytes >= 1e9 else f"{nbytes / 1e6:.1f} MB"


def _card_bytes(device: str) -> int:
    import torch

    free, _ = torch.cuda.mem_get_info(torch.device(device.replace("hip", "cuda")))
    return int(free)


def _host_bytes() -> int | None:
    """MemAvailable of Linux; None elsewhere."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            found = next((line for line in lines if line.startswith("MemAvailable:")), None)
    except OSError:
        found = None
    if found is not None:
        return int(found.split()[1]) * 1024
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None
