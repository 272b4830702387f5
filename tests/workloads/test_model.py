"""A model's matmuls: grouped, counted, and nothing else taken for one."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.gguf_bytes import RawTensor, entry, gguf_bytes
from support.models import smollm2

from warptile.contracts.errors import UnusableInput
from warptile.contracts.problem import Problem, Workload, WorkloadRow
from warptile.gguf import TENSOR_TYPES, type_by_name
from warptile.workloads import from_gguf, from_shapes


def tensor(name: str, type_name: str, *shape: int) -> RawTensor:
    kind = type_by_name(type_name)
    assert kind is not None
    elements = 1
    for d in shape:
        elements *= d
    return RawTensor(name, shape, kind.type_id, bytes(elements // kind.block_size * kind.block_bytes))


def model(folder: Path, *tensors: RawTensor, entries: tuple[bytes, ...] = ()) -> Path:
    path = folder / "model.gguf"
    path.write_bytes(gguf_bytes([entry("general.architecture", "str", "arch"), *entries], tensors))
    return path


def kinds(workload: Workload) -> dict[str, str]:
    return {name: row.role for row in workload.rows for name in row.tensors}


def test_smollm2_rows() -> None:
    found = from_gguf(smollm2())
    assert found.name == "Smollm2 135M 8k Lc100K Mix1 Ep2"
    assert found.unsupported == ()
    assert {(r.format, r.n, r.k, r.role): r.times for r in found.rows} == {
        ("Q4_1", 576, 576, "linear"): 60,
        ("Q4_1", 192, 576, "linear"): 60,
        ("Q4_1", 1536, 576, "linear"): 60,
        ("Q4_1", 576, 1536, "linear"): 30,
        ("Q8_0", 49152, 576, "output"): 1,
    }
    assert found.rows[-1].tensors == ("token_embd.weight",)
    assert sum(r.nbytes for r in found.rows) == sum(r.times * r.n * r.k // 32 * (20, 34)[r.format == "Q8_0"]
                                                    for r in found.rows)  # fmt: skip


def test_the_shipped_smollm2_shapes_are_the_models() -> None:
    def key(row: WorkloadRow) -> tuple[object, ...]:
        return (row.format, row.n, row.k, row.role, row.times, row.nbytes)

    assert {key(r) for r in from_shapes("smollm2-135m").rows} == {key(r) for r in from_gguf(smollm2()).rows}


def test_the_output_runs_for_one_row_of_a_prefill() -> None:
    problems = from_gguf(smollm2()).problems(128)
    assert Problem("Q8_0", 49152, 576, 1, count=1) in problems
    assert Problem("Q4_1", 576, 1536, 128, count=30) in problems


def test_an_untied_embedding_is_no_matmul(tmp_path: Path) -> None:
    path = model(tmp_path, tensor("token_embd.weight", "Q4_0", 64, 96), tensor("output.weight", "Q6_K", 256, 96))
    assert kinds(from_gguf(path)) == {"output.weight": "output"}


@pytest.mark.parametrize("tells", [entry("arch.attention.causal", "bool", 0), entry("arch.pooling_type", "u32", 1)])
def test_an_embedding_model_has_no_output_matmul(tmp_path: Path, tells: bytes) -> None:
    path = model(
        tmp_path, tensor("token_embd.weight", "Q4_0", 64, 96), tensor("blk.0.attn_q.weight", "Q4_0", 64, 64),
        entries=(tells,),
    )  # fmt: skip
    assert kinds(from_gguf(path)) == {"blk.0.attn_q.weight": "linear"}


def test_what_is_not_multiplied_is_not_a_matmul(tmp_path: Path) -> None:
    others = [
        tensor("token_types.weight", "Q4_0", 64, 2),
        tensor("position_embd.weight", "Q4_0", 64, 32),
        tensor("per_layer_token_embd.weight", "Q4_0", 64, 32),
        tensor("blk.0.nextn.embed_tokens.weight", "Q4_0", 64, 32),
        tensor("blk.0.attn_norm.weight", "F32", 64),
        tensor("blk.0.attn_q_norm.weight", "F32", 64, 4),
        tensor("blk.0.attn_q.bias", "F32", 64),
        tensor("blk.0.ffn_gate_exps.bias", "F32", 64, 8),
        tensor("rope_freqs.weight", "F32", 32),
        tensor("rope_factors_long.weight", "F32", 32, 2),
        tensor("blk.0.ssm_conv1d.weight", "F32", 4, 64),
        tensor("blk.0.ssm_a", "F32", 4, 64),
        tensor("v.patch_embd.weight", "F16", 14, 14, 3, 64),
    ]
    found = from_gguf(model(tmp_path, *others, tensor("blk.0.attn_q.weight", "Q4_0", 64, 64)))
    assert kinds(found) == {"blk.0.attn_q.weight": "linear"}
    assert found.unsupported == ()


MOE = (entry("arch.expert_count", "u32", 8), entry("arch.expert_used_count", "u32", 2))


def test_expert_tensors_are_counted(tmp_path: Path) -> None:
    path = model(
        tmp_path,
        *[tensor(f"blk.{i}.ffn_{name}_exps.weight", "Q4_K", 256, 96, 8) for i in range(2) for name in ("gate", "up")],
        *[tensor(f"blk.{i}.ffn_down_exps.weight", "Q6_K", 256, 96, 8) for i in range(2)],
        tensor("blk.0.ffn_gate_inp.weight", "F32", 256, 8),
        entries=MOE,
    )
    found = from_gguf(path)
    assert found.problems(16) == (
        Problem("Q4_K", 96, 256, 16, experts=8, top_k=2, count=4),
        Problem("Q6_K", 96, 256, 16, experts=8, top_k=2, count=2, x_slots=True, summed=True),
    )
    assert [r.role for r in found.rows] == ["experts", "experts_down"]
    assert [(name, count) for name, count, _ in found.unsupported] == [("F32", 1)]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ((), "8 experts, but the metadata has no expert_count"),
        (MOE[:1], "8 experts, but the metadata has no expert_used_count"),
        ((entry("arch.expert_count", "u32", 4), MOE[1]), "holds 8 experts, the metadata says 4"),
        ((MOE[0], entry("arch.expert_used_count", "u32", 9)), "holds 8 experts, the metadata uses 9"),
        ((MOE[0], entry("arch.expert_used_count", "u32", 0)), "holds 8 experts, the metadata uses 0"),
    ],
)
def test_experts_that_the_metadata_contradicts(tmp_path: Path, entries: tuple[bytes, ...], message: str) -> None:
    path = model(tmp_path, tensor("blk.0.ffn_up_exps.weight", "Q4_0", 64, 4, 8), entries=entries)
    with pytest.raises(UnusableInput, match=message):
        from_gguf(path)


def test_what_has_no_kernel_is_listed_with_its_share(tmp_path: Path) -> None:
    path = model(
        tmp_path,
        tensor("blk.0.attn_q.weight", "Q8_0", 32, 32),  # 1088 bytes
        tensor("blk.0.attn_k.weight", "F16", 32, 8),  # 512
        tensor("blk.0.attn_v.weight", "BF16", 32, 8),  # 512
        tensor("blk.0.attn_k_b.weight", "Q8_0", 32, 8, 2),  # 544
        tensor("blk.0.ffn_up.3.weight", "Q8_0", 32, 8),  # 272
        RawTensor("blk.0.ffn_up.weight", (32, 2), 999, bytes(96)),
    )
    total = 1088 + 512 + 512 + 544 + 272 + 96
    found = from_gguf(path)
    assert kinds(found) == {"blk.0.attn_q.weight": "linear"}
    listed = {name: (count, share) for name, count, share in found.unsupported}
    assert set(listed) == {"F16", "BF16", "Q8_0 (3-D)", "Q8_0 (a tensor an expert)", "type 999"}
    assert listed["F16"] == (1, pytest.approx(512 / total))
    assert listed["type 999"] == (1, pytest.approx(96 / total))
    assert list(listed) == sorted(listed, key=lambda name: -listed[name][1])


def test_a_model_without_a_matmul_says_what_it_has(tmp_path: Path) -> None:
    path = model(tmp_path, tensor("blk.0.attn_q.weight", "F16", 64, 64), tensor("blk.0.attn_k.weight", "F16", 64, 64))
    with pytest.raises(UnusableInput, match=r"model\.gguf: no matmul .* the file has F16 \(2 tensors\)"):
        from_gguf(path)
    with pytest.raises(UnusableInput, match="the file has no weights at all"):
        from_gguf(model(tmp_path))


@pytest.mark.parametrize("name", ["Q1_0", "Q2_0", "PQ2_0", "PTQ1_0"])
def test_ternary_models_have_matmuls(tmp_path: Path, name: str) -> None:
    (kind,) = (k for k in TENSOR_TYPES.values() if k.name == name)
    found = from_gguf(model(tmp_path, tensor("blk.0.ffn_up.weight", name, 2 * kind.block_size, 3)))
    assert found.problems(4) == (Problem(name, 3, 2 * kind.block_size, 4),)


def test_a_model_without_a_name_goes_by_its_files(tmp_path: Path) -> None:
    assert from_gguf(model(tmp_path, tensor("a.weight", "Q4_0", 32, 2))).name == "model"
