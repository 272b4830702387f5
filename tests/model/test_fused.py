"""What replaces transformers' own parts must compute what they compute."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from transformers.integrations.sdpa_attention import sdpa_attention_forward  # noqa: E402
from transformers.models.gemma3.modeling_gemma3 import Gemma3RMSNorm  # noqa: E402
from transformers.models.llama.modeling_llama import LlamaRMSNorm  # noqa: E402

from warptile.model.fused import attend, fuse_norms  # noqa: E402


@pytest.mark.parametrize(("kind", "offset"), [(LlamaRMSNorm, 0.0), (Gemma3RMSNorm, 1.0)])
def test_norms(kind: type, offset: float) -> None:
    generator = torch.Generator().manual_seed(0)
    model = torch.nn.Sequential(kind(64, 1e-5))
    model[0].weight.data = torch.randn(64, generator=generator)
    x = 3 * torch.randn(2, 5, 64, generator=generator)
    wanted = model(x)
    fuse_norms(model, offset)
    assert type(model[0]).__module__ == "warptile.model.fused"
    # Sums of 64 squares in fp32 in another order, then a few roundings.
    assert (model(x) - wanted).abs().max() <= 64 * 2.0**-24 * wanted.abs().max()


@pytest.mark.parametrize("tokens", [1, 3])
@pytest.mark.parametrize("masked", [True, False])
def test_attention_with_shared_keys(tokens: int, masked: bool) -> None:
    generator = torch.Generator().manual_seed(tokens)
    q, k, v = (torch.randn(2, heads, n, 16, generator=generator) for heads, n in ((6, tokens), (2, 9), (2, 9)))
    mask = (torch.arange(9)[None, :] <= torch.arange(tokens)[:, None] + 4)[None, None] if masked else None
    module = torch.nn.Module()
    module.num_key_value_groups, module.is_causal = 3, False
    found, _ = attend(module, q, k, v, mask, scaling=0.3)
    wanted, _ = sdpa_attention_forward(module, q, k, v, mask, scaling=0.3)
    assert found.shape == wanted.shape
    assert torch.allclose(found, wanted, atol=1e-6)
