"""A GGUF file as a transformers model whose weights stay packed."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warptile.contracts import MissingExtra, UnusableInput
from warptile.gguf import open_gguf
from warptile.places import Places

if TYPE_CHECKING:
    import torch

    from warptile.model.group import Backend
    from warptile.model.tensors import ModelTensors

EXTRA = "model"
EXPECTED_TOKENS = (1, 512)
"""Numbers of tokens whose matmuls are compiled while a model is loaded."""


def load(
    path: str | Path,
    device: str | None = None,
    *,
    dtype: torch.dtype | None = None,
    dense: bool = False,
    batch_invariant: bool = False,
    places: Places | None = None,
) -> tuple[Any, Any]:
    """(model, tokenizer) of a GGUF: transformers' architecture and tokenizer, linears, embeddings and experts packed.

    device: "cuda:0" (Triton kernels on the card), "vulkan:0" (the model on the host in fp32, its matmuls there), "cpu"
    with `dense` alone; None: the first CUDA card, else the first Vulkan device. dtype: of what is not packed; None:
    fp32 on the host, fp16 on a card (bf16 where the architecture exceeds fp16). dense: weights decoded to `dtype`
    instead, as a reference. batch_invariant: a row's results do not depend on the rows beside it. places: where tables
    are, and the caches. The tables of that device decide which kernel serves which matmul.

    Raises MissingExtra without transformers; UnusableInput where the file, its architecture or its tokenizer cannot be
    used, where it does not fit the memory there is, and for an unknown device.
    """
    require_model()
    from warptile.model.tensors import ModelTensors
    from warptile.model.tokenizer import tokenizer_of

    tensors = ModelTensors.of(open_gguf(path))
    where = device or first_device()
    refuse(tensors, where, dtype, dense)
    tokenizer = tokenizer_of(tensors.file)
    return load_model(tensors, where, dtype, dense, batch_invariant, places), tokenizer


def refuse(tensors: ModelTensors, device: str, dtype: torch.dtype | None = None, dense: bool = False) -> None:
    """Raises UnusableInput for an unknown device, and where the weights do not fit the memory there is."""
    from warptile.model.memory import refuse_too_large

    _refuse_device(device, dense)
    refuse_too_large(tensors, device, dense, dtype)


def load_model(
    tensors: ModelTensors,
    device: str,
    dtype: torch.dtype | None = None,
    dense: bool = False,
    batch_invariant: bool = False,
    places: Places | None = None,
) -> Any:
    """The model alone; arguments and errors are `load`'s."""
    from warptile.model.build import build

    refuse(tensors, device, dtype, dense)
    if dense:
        return build(tensors, None, torch_device(device), _dtype(tensors, device, dtype))
    backend = _backend(device, batch_invariant, places)
    if device.partition(":")[0] in ("cuda", "hip"):
        _expect(tensors, backend, _dtype(tensors, device, dtype))
    model = build(tensors, backend, backend.device, _dtype(tensors, device, dtype))
    weakref.finalize(model, backend.close)
    return model


def require_model() -> None:
    """Raises MissingExtra where torch or transformers is not installed."""
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError:
        raise MissingExtra("a whole model", EXTRA) from None


def first_device() -> str:
    """The first CUDA or ROCm card torch can use, else the first Vulkan device. Raises MissingExtra without torch."""
    require_model()
    import torch

    return "cuda:0" if torch.cuda.is_available() else "vulkan:0"


def torch_device(device: str) -> torch.device:
    """Where the parts of a model lie that are not packed."""
    import torch

    kind = device.partition(":")[0]
    return torch.device(device.replace("hip", "cuda")) if kind in ("cuda", "hip") else torch.device("cpu")


def _refuse_device(device: str, dense: bool) -> None:
    kind = device.partition(":")[0]
    if kind not in ("cuda", "hip", "vulkan", "interpreter", "cpu"):
        raise UnusableInput(f"no device {device!r}; there are cuda:N, hip:N and vulkan:N")
    if kind == "cpu" and not dense:
        raise UnusableInput("packed weights are not multiplied on the processor: name a device, or take dense=True")
    if kind in ("cuda", "hip"):
        import torch

        if not torch.cuda.is_available():
            raise UnusableInput(f"no device {device!r}: torch finds no CUDA or ROCm card")


def _dtype(tensors: ModelTensors, device: str, dtype: torch.dtype | None) -> torch.dtype:
    import torch

    if dtype is not None:
        return dtype
    if device.partition(":")[0] not in ("cuda", "hip"):
        return torch.float32
    return torch.bfloat16 if tensors.architecture.half == "bf16" else torch.float16


def _expect(tensors: ModelTensors, backend: Backend, dtype: torch.dtype) -> None:
    """Compile what a prompt and a token need while the weights are packed."""
    from warptile.model.cuda import TorchBackend
    from warptile.workloads.model import of_file

    if isinstance(backend, TorchBackend):
        backend.expect(of_file(tensors.file), dtype, EXPECTED_TOKENS)


def _backend(device: str, batch_invariant: bool, places: Places | None) -> Backend:
    if device.partition(":")[0] == "vulkan":
        from warptile.model.vulkan import VulkanBackend
        from warptile.serve import Session

        return VulkanBackend(Session(device, places), batch_invariant)
    from warptile.model.cuda import TorchBackend
    from warptile.runtimes.triton.require import require_triton

    require_triton()
    return TorchBackend(torch_device(device), batch_invariant, places)
