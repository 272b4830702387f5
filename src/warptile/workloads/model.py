"""A GGUF model's matmuls."""

from __future__ import annotations

from pathlib import Path

from warptile.contracts.errors import UnusableInput
from warptile.contracts.problem import Workload, WorkloadRow
from warptile.gguf import GGUFFile, TensorInfo, open_gguf
from warptile.gguf.escape import escaped, shown
from warptile.workloads.roles import OUTPUT, TOKEN_EMBEDDING, Kind, kind_of
from warptile.workloads.supported import format_names

_ROLES = {Kind.LINEAR: "linear", Kind.OUTPUT: "output", Kind.EXPERTS: "experts", Kind.EXPERTS_DOWN: "experts_down"}

_GROUPED = (Kind.EXPERTS, Kind.EXPERTS_DOWN)


def from_gguf(path: str | Path) -> Workload:
    """The matmuls one pass over the model asks for: weights grouped by (format, n, k, role).

    A weight's GGUF shape is [k, n], an expert tensor's [k, n, experts]; top_k is the metadata's
    `{architecture}.expert_used_count`. Experts that every token takes (`_shexp`) are linear. `token_embd.weight` is
    looked up, not multiplied; where the model has no `output.weight` it is also the output matmul. Rows are in file
    order, the output last. What cannot be asked for (F32, F16 and BF16 weights, types that do not decode, tensors of a
    form no kernel computes) is in `unsupported`, the largest share of the file's tensor bytes first.
    Raises UnusableInput where the file cannot be read, where expert tensors and metadata disagree, and where nothing
    is left to ask for.
    """
    return of_file(open_gguf(path))


def of_file(model: GGUFFile) -> Workload:
    """`from_gguf` of an open file."""
    names = format_names()
    groups: dict[tuple[str, int, int, str, int, int], list[TensorInfo]] = {}
    unsupported: dict[str, list[TensorInfo]] = {}
    for tensor in model.tensors.values():
        kind = _part_in(model, tensor)
        if kind is Kind.UNGROUPED:
            form = f"{len(tensor.shape)}-D" if len(tensor.shape) > 2 else "a tensor an expert"
            unsupported.setdefault(f"{tensor.type_name} ({form})", []).append(tensor)
        elif kind in _ROLES and tensor.type_name not in names:
            unsupported.setdefault(tensor.type_name, []).append(tensor)
        elif kind in _ROLES:
            experts, top_k = _experts(model, tensor) if kind in _GROUPED else (1, 1)
            key = (tensor.type_name, tensor.shape[1], tensor.shape[0], _ROLES[kind], experts, top_k)
            groups.setdefault(key, []).append(tensor)
    rows = tuple(
        WorkloadRow(
            *key[:4], tuple(t.name for t in tensors), sum(t.nbytes for t in tensors), experts=key[4], top_k=key[5]
        )
        for key, tensors in sorted(groups.items(), key=lambda group: group[0][3] == "output")
    )
    left_out = _shares(model, unsupported)
    if not rows:
        listed = ", ".join(f"{name} ({count} tensors)" for name, count, _ in left_out) or "no weights at all"
        raise UnusableInput(f"{shown(model.path)}: no matmul in a format with a kernel; the file has {listed}")
    return Workload(_name(model), str(model.path), rows, left_out)


def _part_in(model: GGUFFile, tensor: TensorInfo) -> Kind:
    kind = kind_of(tensor)
    tied = tensor.name == TOKEN_EMBEDDING and OUTPUT not in model.tensors and not _embeds_only(model)
    return Kind.OUTPUT if kind is Kind.EMBEDDING and tied else kind


def _embeds_only(model: GGUFFile) -> bool:
    """Whether the model ends in an embedding of the text, so that no token is ever predicted."""
    architecture = model.metadata.get("general.architecture")
    causal = model.metadata.get(f"{architecture}.attention.causal", True)
    return not causal or bool(model.metadata.get(f"{architecture}.pooling_type", 0))


def _experts(model: GGUFFile, tensor: TensorInfo) -> tuple[int, int]:
    """(experts, top_k) of an expert tensor, held against the metadata."""
    architecture = model.metadata.get("general.architecture")
    experts = tensor.shape[2]
    where = f"{shown(model.path)}: tensor {escaped(tensor.name)}"
    found = []
    for name in ("expert_count", "expert_used_count"):
        value = model.metadata.get(f"{architecture}.{name}")
        if type(value) is not int:
            raise UnusableInput(f"{where} holds {experts} experts, but the metadata has no {name}")
        found.append(value)
    count, used = found
    if count != experts:
        raise UnusableInput(f"{where} holds {experts} experts, the metadata says {count}")
    if not 1 <= used <= experts:
        raise UnusableInput(f"{where} holds {experts} experts, the metadata uses {used} of them")
    return experts, used


def _shares(model: GGUFFile, unsupported: dict[str, list[TensorInfo]]) -> tuple[tuple[str, int, float], ...]:
    total = sum(t.nbytes for t in model.tensors.values())
    listed = [(name, len(found), sum(t.nbytes for t in found) / total) for name, found in unsupported.items()]
    return tuple(sorted(listed, key=lambda entry: -entry[2]))


def _name(model: GGUFFile) -> str:
    name = model.metadata.get("general.name")
    return name if isinstance(name, str) and name.strip() else model.path.stem
