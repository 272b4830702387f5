"""A model file's tensors by the names of transformers' modules, as that architecture wants them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warptile import formats
from warptile.contracts import UnusableInput
from warptile.gguf import GGUFFile, TensorInfo
from warptile.gguf.escape import escaped, shown
from warptile.layouts.fields import F32
from warptile.model.architectures import Architecture, architecture_of
from warptile.model.metadata import Keys
from warptile.weights import QuantTensor

_LAYER = re.compile(r"model\.layers\.(\d+)\.(.+)")
_FLOATS: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}
FLOAT_BYTES = {name: kind.itemsize for name, kind in _FLOATS.items()}
ROPE_FACTORS = "rope_freqs.weight"
EXPERT_STEMS = ("ffn_gate_exps", "ffn_up_exps", "ffn_down_exps")


@dataclass(frozen=True)
class ModelTensors:
    """The file and what its architecture says of it; every refusal names the file and the tensor."""

    file: GGUFFile
    architecture: Architecture

    @classmethod
    def of(cls, file: GGUFFile) -> ModelTensors:
        """Raises UnusableInput where the architecture is not supported."""
        return cls(file, architecture_of(Keys(file)))

    @property
    def tied(self) -> bool:
        """Whether the output matmul reads the token embedding."""
        return "output.weight" not in self.file.tensors

    def name(self, path: str, leaf: str = "weight") -> str | None:
        """The tensor of a module's parameter; None where the architecture knows no such module."""
        if (outer := self.architecture.outer.get(path)) is not None:
            return f"{'token_embd' if outer == 'output' and self.tied else outer}.{leaf}"
        match = _LAYER.fullmatch(path)
        stem = self.architecture.layer.get(match[2]) if match else None
        return f"blk.{match[1]}.{stem}.{leaf}" if match and stem else None

    def is_packed(self, path: str) -> bool:
        """Whether a module's weight is quantized in the file. Raises UnusableInput where it has no such tensor."""
        return self.file.tensor(self._required(path)).type_name not in _FLOATS

    def packed(self, path: str) -> QuantTensor:
        """A module's quantized weight in file blocks, rows in transformers' order.

        Raises UnusableInput for a missing tensor, and a type that no format here decodes.
        """
        name = self._required(path)
        return self._quantized(self.file.tensor(name), self._rows(name))

    def experts(self, path: str) -> tuple[QuantTensor, QuantTensor, QuantTensor]:
        """Gate, up and down of an experts' module, experts' rows one after another.

        Raises UnusableInput as `packed`, and where a tensor holds plain floats.
        """
        match = _LAYER.fullmatch(path)
        assert match is not None
        gate, up, down = (
            self._quantized(self.file.tensor(f"blk.{match[1]}.{stem}.weight"), None) for stem in EXPERT_STEMS
        )
        return gate, up, down

    def dense(self, name: str) -> F32:
        """A tensor decoded to fp32, in transformers' form: [experts,] n, k; rows in its order, norms without offset."""
        info = self.file.tensor(name)
        shape = tuple(reversed(info.shape))
        if info.type_name in _FLOATS:
            values = _floats(self.file.blocks(name), info.type_name).reshape(shape)
        else:
            values = self._quantized(info, None).dequantize().reshape(shape)
        if (rows := self._rows(name)) is not None:
            values = values[rows]
        if name.endswith("norm.weight") and self.architecture.norm_offset:
            values = values - np.float32(self.architecture.norm_offset)
        return values

    def refuse_leftovers(self, used: set[str]) -> None:
        """Raises UnusableInput where the file holds tensors that nothing of the model asked for."""
        left = sorted(set(self.file.tensors) - used - {ROPE_FACTORS})
        if left:
            raise UnusableInput(
                f"{shown(self.file.path)}: {len(left)} tensors have no place in transformers' "
                f"{self.architecture.model_type}, the first is {escaped(left[0])}"
            )

    @cached_property
    def rope_factors(self) -> F32 | None:
        """f32[head / 2]: what each rotary frequency is divided by; None where the file has none."""
        return self.dense(ROPE_FACTORS) if ROPE_FACTORS in self.file.tensors else None

    def _required(self, path: str) -> str:
        name = self.name(path)
        if name is None or name not in self.file.tensors:
            raise UnusableInput(f"{shown(self.file.path)}: no tensor for transformers' module {path} ({name})")
        return name

    def _quantized(self, info: TensorInfo, rows: NDArray[np.int64] | None) -> QuantTensor:
        try:
            format = formats.by_gguf_id(info.type_id)
        except UnusableInput as error:
            raise UnusableInput(f"{shown(self.file.path)}: tensor {escaped(info.name)}: {error}") from None
        k, *outer = info.shape
        shape = (int(np.prod(outer)), k)
        blocks = self.file.blocks(info.name).reshape(shape[0], -1)
        return QuantTensor(format, blocks if rows is None else blocks[rows], shape)

    def _rows(self, name: str) -> NDArray[np.int64] | None:
        """Which row of the file each row is: the converter laid the two halves of a rotary pair side by side."""
        stem = name.split(".")[-2]
        if not name.startswith("blk.") or stem not in self.architecture.permuted:
            return None
        keys = Keys(self.file)
        heads = keys.whole("attention.head_count")
        if stem == "attn_k":
            heads = keys.whole("attention.head_count_kv", heads)
        n = self.file.tensor(name).shape[-1]
        return np.arange(n).reshape(heads, n // heads // 2, 2).swapaxes(1, 2).reshape(-1)


def _floats(data: NDArray[np.uint8], type_name: str) -> F32:
    values = data.reshape(-1).view(_FLOATS[type_name])
    found: F32 = (values.astype(np.uint32) << 16).view(np.float32) if type_name == "BF16" else values.astype(np.float32)
    return found
