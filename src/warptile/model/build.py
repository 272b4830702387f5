"""transformers' model of a file's architecture, filled from the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import AutoConfig, GenerationConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING
from transformers.utils import logging

from warptile.contracts import UnusableInput
from warptile.layouts.fields import F32
from warptile.model.group import Backend
from warptile.model.metadata import Keys
from warptile.model.quantizer import Plan, WarptileConfig
from warptile.model.tensors import EXPERT_STEMS, ModelTensors

DECODERS = 4
"""Threads that decode tensors of a dense model."""


def build(tensors: ModelTensors, backend: Backend | None, device: torch.device, dtype: torch.dtype) -> Any:
    """The model in evaluation mode on `device`; weights packed by `backend`, or decoded to `dtype` where it is None.

    Raises UnusableInput where the file's tensors and the architecture's modules do not match.
    """
    keys = Keys(tensors.file)
    values = tensors.architecture.config(keys)
    values["tie_word_embeddings"] = tensors.tied and (backend is None or not tensors.is_packed("model.embed_tokens"))
    try:
        config = AutoConfig.for_model(tensors.architecture.model_type, **values)
    except (TypeError, ValueError) as error:
        raise UnusableInput(
            f"{keys.where}: transformers refuses its configuration: {' '.join(str(error).split())}"
        ) from None
    kind = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    state, used = _state(tensors, _skeleton(kind, config), backend is not None, dtype)
    tensors.refuse_leftovers(used)
    quantization = None if backend is None else WarptileConfig(Plan(tensors, backend, dtype))
    with _no_progress_bar():
        model = kind.from_pretrained(
            None, config=config, state_dict=state, dtype=dtype, quantization_config=quantization
        )
    del state
    _divide_frequencies(model, tensors)
    model.generation_config = GenerationConfig(
        bos_token_id=config.bos_token_id, eos_token_id=config.eos_token_id, pad_token_id=config.pad_token_id
    )
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return model.to(device).eval()


@contextmanager
def _no_progress_bar() -> Iterator[None]:
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _skeleton(kind: Any, config: Any) -> nn.Module:
    with torch.device("meta"):
        model: nn.Module = kind(config)
    return model


def _state(
    tensors: ModelTensors, skeleton: nn.Module, packed: bool, dtype: torch.dtype
) -> tuple[dict[str, torch.Tensor], set[str]]:
    """(the state that transformers loads, names of the file's tensors that the model uses)."""
    jobs: dict[str, Callable[[], torch.Tensor]] = {}
    used: set[str] = set()
    for path, module in skeleton.named_modules():
        if tensors.architecture.experts and path.endswith("." + tensors.architecture.experts):
            names = [f"blk.{path.split('.')[2]}.{stem}.weight" for stem in EXPERT_STEMS]
            used.update(names)
            if not packed:
                jobs |= _expert_jobs(tensors, path, names, dtype)
            continue
        for leaf, _ in module.named_parameters(recurse=False):
            name = tensors.name(path, leaf)
            if name is None or name not in tensors.file.tensors:
                raise UnusableInput(f"{Keys(tensors.file).where}: no tensor for transformers' {path}.{leaf} ({name})")
            used.add(name)
            quantized = leaf == "weight" and isinstance(module, nn.Linear | nn.Embedding) and tensors.is_packed(path)
            if not (packed and quantized) and not (path == "lm_head" and tensors.tied):
                jobs[f"{path}.{leaf}"] = _job(tensors, name, dtype)
    with ThreadPoolExecutor(DECODERS) as pool:
        return dict(zip(jobs, pool.map(lambda job: job(), jobs.values()), strict=True)), used


def _job(tensors: ModelTensors, name: str, dtype: torch.dtype) -> Callable[[], torch.Tensor]:
    def decode() -> torch.Tensor:
        return _tensor(tensors.dense(name), dtype)

    return decode


def _expert_jobs(
    tensors: ModelTensors, path: str, names: list[str], dtype: torch.dtype
) -> dict[str, Callable[[], torch.Tensor]]:
    gate, up, down = names

    def inner() -> torch.Tensor:
        return _tensor(np.concatenate([tensors.dense(gate), tensors.dense(up)], axis=1), dtype)

    return {f"{path}.gate_up_proj": inner, f"{path}.down_proj": _job(tensors, down, dtype)}


def _tensor(values: F32, dtype: torch.dtype) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).to(dtype)


def _divide_frequencies(model: nn.Module, tensors: ModelTensors) -> None:
    """Rotary frequencies over the file's factors, as llama.cpp applies them (Llama 3.1's long contexts)."""
    factors = tensors.rope_factors
    if factors is None:
        return
    for module in model.modules():
        for name in ("inv_freq", "original_inv_freq"):
            frequencies = getattr(module, name, None)
            if isinstance(frequencies, torch.Tensor):
                if frequencies.numel() != factors.size:
                    raise UnusableInput(
                        f"{Keys(tensors.file).where}: rope_freqs.weight has {factors.size} factors for "
                        f"{frequencies.numel()} rotary frequencies"
                    )
                setattr(module, name, frequencies / torch.from_numpy(factors.reshape(-1)))
