"""A model that loads another way than transformers, or whose packed weights are not the file's, writes nonsense."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import warptile
from warptile.contracts import UnusableInput
from warptile.places import Places
from warptile.workloads import from_gguf
from warptile.workloads.joined import joined

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from support.tiny_models import write_tiny  # noqa: E402
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint  # noqa: E402

from warptile.model.modules import QuantEmbedding, QuantExperts, QuantLinear  # noqa: E402
from warptile.model.runner import Runner  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::warptile.routing.UntunedWarning")

# Sums over k <= 96 in fp32 in another order, through two layers and their norms: some hundred units in the last place
# of logits below 8.
CLOSE = 300 * 2.0**-21


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    return tmp_path_factory.mktemp("models")


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3", "gemma3", "qwen3moe"])
def test_decoded_weights_are_those_transformers_itself_reads(folder: Path, architecture: str) -> None:
    path = write_tiny(folder / f"{architecture}.gguf", architecture)
    model, _ = warptile.load(path, "cpu", dense=True)
    theirs = load_gguf_checkpoint(str(path), return_tensors=True, model_to_load=model)["tensors"]
    ours = model.state_dict()
    assert set(theirs) == set(ours)
    assert [name for name in ours if not torch.equal(ours[name], theirs[name])] == []


@pytest.mark.parametrize("architecture", ["llama", "qwen3moe"])
def test_packed_on_vulkan_computes_what_the_decoded_model_does(
    folder: Path, architecture: str, software_device: str, places: Places
) -> None:
    path = write_tiny(folder / f"{architecture}-tied.gguf", architecture, tied=True)
    dense, _ = warptile.load(path, "cpu", dense=True)
    packed, tokenizer = warptile.load(path, software_device, places=places)
    ids = tokenizer("the other bytes", return_tensors="pt").input_ids
    with torch.no_grad():
        assert (packed(ids).logits - dense(ids).logits).abs().max() < CLOSE
        told = packed.generate(ids, max_new_tokens=6, do_sample=False)
    assert torch.equal(told, dense.generate(ids, max_new_tokens=6, do_sample=False))
    runner = Runner(packed, 40)
    first = int(runner.prefill(ids[0]).argmax())
    runner.mark()
    for _ in range(2):
        assert [first, *runner.decode(first, 5).tolist()] == told[0, ids.shape[1] :].tolist()
        runner.restore()
    with pytest.raises(UnusableInput, match="there is room for 40 tokens"):
        runner.decode(first, 40)
    kinds = [type(m) for m in packed.modules()]
    assert not any(issubclass(kind, torch.nn.Linear | torch.nn.Embedding) for kind in kinds)
    assert kinds.count(QuantLinear) == (9 if architecture == "qwen3moe" else 15)
    assert kinds.count(QuantExperts) == (2 if architecture == "qwen3moe" else 0)
    assert isinstance(packed.model.embed_tokens, QuantEmbedding)
    assert packed.model.embed_tokens.group is packed.lm_head.group


def test_a_row_does_not_depend_on_its_batch_where_that_is_asked(
    folder: Path, software_device: str, places: Places
) -> None:
    path = write_tiny(folder / "invariant.gguf", "qwen2", layers=1)
    model, _ = warptile.load(path, software_device, places=places, batch_invariant=True)
    linear, x = model.model.layers[0].mlp.down_proj, torch.randn(70, 96, generator=torch.Generator().manual_seed(1))
    whole = linear(x)
    assert all(torch.equal(linear(x[i : i + 1])[0], whole[i]) for i in (0, 33, 69))
    assert torch.equal(linear(x[:9]), whole[:9])


def test_a_changed_input_is_not_served_from_what_a_sibling_computed(
    folder: Path, software_device: str, places: Places
) -> None:
    path = write_tiny(folder / "stale.gguf", "qwen2", layers=1)
    model, _ = warptile.load(path, software_device, places=places)
    mlp, x = model.model.layers[0].mlp, torch.ones(2, 64)
    gate = mlp.gate_proj(x)
    x.mul_(2)
    assert torch.allclose(mlp.up_proj(x) / 2, mlp.up_proj(torch.ones(2, 64)))
    assert torch.allclose(mlp.gate_proj(x), 2 * gate)


def test_packed_in_tritons_interpreter(folder: Path, places: Places) -> None:
    pytest.importorskip("triton")
    path = write_tiny(folder / "triton.gguf", "llama", tied=True, layers=1)
    dense, _ = warptile.load(path, "cpu", dense=True)
    packed, _ = warptile.load(path, "interpreter:0", places=places)
    ids = torch.tensor([[7, 300, 12]])
    with torch.no_grad():
        assert torch.equal(packed.model.embed_tokens(ids), dense.model.embed_tokens(ids))
        wanted = dense(ids).logits
        # Operands are fp16: 2^-11 of each, and five matmuls deep.
        assert (packed(ids).logits - wanted).abs().max() < 16 * 2.0**-11 * wanted.abs().max()
    first = packed.model.layers[0].self_attn.q_proj.group
    assert len(list(first.buffers())) == 1, "q, k and v in one format are one matrix"
    asked = {(p.format, p.n, p.k) for p in joined(from_gguf(path)).problems(3)}
    groups = [m.group for m in packed.modules() if isinstance(m, QuantLinear)]
    assert asked == {(format, n, k) for group in groups for _, format, n, k, _ in group.parts}, "what tune tunes"


@pytest.mark.parametrize(
    ("architecture", "change", "says"),
    [
        ("mamba", {}, "architecture mamba is not supported"),
        ("llama", {"extra": {"prism.hadamard.signs": "s"}}, "Hadamard"),
        ("llama", {"leave_out": ("tokenizer",)}, "tokenizer.ggml.model"),
        ("llama", {"leave_out": ("blk.1.attn_k",)}, "blk.1.attn_k.weight"),
        ("llama", {"layers": 3, "extra": {"llama.rope.scaling.type": "longrope"}}, "longrope"),
    ],
)
def test_what_cannot_be_loaded_is_said_by_name(
    folder: Path, architecture: str, change: dict[str, object], says: str
) -> None:
    path = write_tiny(folder / "refused.gguf", architecture, **change)
    with pytest.raises(UnusableInput, match=says):
        warptile.load(path, "cpu", dense=True)


def test_a_model_larger_than_memory_is_refused_before_it_is_loaded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_tiny(folder / "large.gguf", "llama")
    monkeypatch.setattr("warptile.model.memory._host_bytes", lambda: 50_000)
    with pytest.raises(UnusableInput, match=r"its weights take 0\.1 MB packed, this machine has 0\.1 MB free"):
        warptile.load(path, "vulkan:0")


def test_no_such_device(folder: Path) -> None:
    path = write_tiny(folder / "nowhere.gguf", "llama")
    with pytest.raises(UnusableInput, match="no device 'metal:0'"):
        warptile.load(path, "metal:0")
    with pytest.raises(UnusableInput, match="dense=True"):
        warptile.load(path, "cpu")
