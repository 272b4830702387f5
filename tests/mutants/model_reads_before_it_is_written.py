"""A kernel right in isolation, wrong in the model: launched without waiting for the one before it, it reads what the
last call left. Every proof of it passes; perplexity and greedy tokens against the decoded model do not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.mutants.planting import Lab, Mutant, Spoken


def run(lab: Lab, planted: bool) -> Spoken:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tests.support.tiny_models import write_tiny
    from warptile.confirm.confirming import Amount, confirm_models, read_text
    from warptile.model import load

    def models() -> Any:
        path = write_tiny(lab.folder / "model.gguf", "qwen3", tied=True)
        device = lab.fixture("software_device")
        return load(path, "cpu", dense=True)[0], *load(path, device, places=lab.places)

    reference, tuned, tokenizer = lab.once("tiny models", models)
    held: dict[Any, Any] = {}

    def stale(_module: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        x = inputs[0]
        before, held[x.shape] = held.get(x.shape), x.clone()
        return (x if before is None else before, *inputs[1:])

    hook = tuned.model.layers[1].mlp.down_proj.register_forward_pre_hook(stale) if planted else None
    try:
        found = confirm_models(
            reference, tuned, tokenizer, read_text(None), Amount(window=48, windows=2, tokens=6), ("model", "device")
        )
    finally:
        if hook is not None:
            hook.remove()
    return Spoken("" if found.right else "confirm", "; ".join(found.failed))


MUTANT = Mutant(19, "one matmul of a model reads its input of the call before", "confirm", "lavapipe", run)
