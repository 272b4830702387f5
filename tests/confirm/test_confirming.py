"""A wrong model must not be confirmed, and a right one must."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from warptile.contracts import UnusableInput
from warptile.journal import Journal
from warptile.journal.history import History
from warptile.places import Places

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from support.tiny_models import write_tiny  # noqa: E402

from warptile.cli import run  # noqa: E402
from warptile.confirm.confirming import Amount, Confirmation, confirm_models, read_text  # noqa: E402
from warptile.confirm.measures import agreement, compare  # noqa: E402
from warptile.model import load  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::warptile.routing.UntunedWarning")
AMOUNT = Amount(window=48, windows=2, tokens=12)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("confirm") / "model.gguf", "qwen3", tied=True)


@pytest.fixture(scope="module")
def reference(path: Path) -> Any:
    return load(path, "cpu", dense=True)[0]


@pytest.fixture(scope="module")
def packed(path: Path, software_device: str, places: Places) -> Any:
    return load(path, software_device, places=places)


def confirmed(reference: Any, packed: Any) -> Confirmation:
    return confirm_models(reference, *packed, read_text(None), AMOUNT, ("model", "device"))


def test_a_right_model_is_confirmed(reference: Any, packed: Any) -> None:
    found = confirmed(reference, packed)
    assert found.right
    assert found.agreement is not None
    assert found.agreement.tokens == 2 * 47
    assert found.agreement.kl_mean < 1e-8
    assert found.greedy == 12
    assert not found.partings


def test_one_matmul_with_anothers_weights_is_not_confirmed(reference: Any, packed: Any) -> None:
    first, second = (layer.mlp.down_proj for layer in packed[0].model.layers)
    own = first.group
    first.join(second.group, 0)
    try:
        found = confirmed(reference, packed)
    finally:
        first.join(own, 0)
    assert not found.right
    assert any("divergence" in reason for reason in found.failed)


def test_nan_is_a_failed_verdict_that_names_the_first_layer(reference: Any, packed: Any) -> None:
    up = packed[0].model.layers[1].mlp.up_proj
    handle = up.register_forward_hook(lambda _module, _inputs, result: result * math.nan)
    try:
        found = confirmed(reference, packed)
    finally:
        handle.remove()
    assert not found.right
    assert found.failed == ("the tuned arm's logits are not finite; first in model.layers.1.mlp.up_proj",)


def test_nan_of_a_decoded_token_alone_is_a_failed_verdict(reference: Any, packed: Any) -> None:
    """One token takes other kernels than a window does."""
    up = packed[0].model.layers[1].mlp.up_proj

    def broken(_module: Any, _inputs: Any, result: Any) -> Any:
        return result * math.nan if result.shape[-2] == 1 else result

    handle = up.register_forward_hook(broken)
    try:
        found = confirmed(reference, packed)
    finally:
        handle.remove()
    assert found.failed == (
        "greedy token 1: the tuned arm's logits are not finite; first in model.layers.1.mlp.up_proj",
    )


def test_a_model_far_off_has_a_perplexity_still() -> None:
    """1000 nats a token: beyond what exp can hold."""
    tuned = torch.tensor([[0.0, 1000.0], [0.0, 1000.0]])
    found = agreement([compare(-tuned, tuned, torch.tensor([0, 0]))])
    assert found.perplexity == math.inf
    assert found.difference == 1000.0


def test_a_text_shorter_than_a_window_is_refused(packed: Any, tmp_path: Path) -> None:
    model, tokenizer = packed
    words = tmp_path / "short.txt"
    words.write_text("too short")
    with pytest.raises(UnusableInput, match=r"short\.txt: 9 tokens, shorter than a window of 48"):
        confirm_models(model, model, tokenizer, read_text(words), AMOUNT, ("", ""))


def test_what_cannot_be_confirmed_is_refused_before_tuning(
    tmp_path: Path, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mute = write_tiny(tmp_path / "mute.gguf", "llama", layers=1, leave_out=("tokenizer",))
    assert run(["tune", str(mute), "--confirm", "--device", "vulkan:none"]) == 2
    assert "no tokenizer can be built" in capsys.readouterr().err
    assert run(["tune", str(path), "--confirm", "--fleet", "vulkan:0"]) == 2
    assert "leave --fleet" in capsys.readouterr().err


def test_measures_are_those_of_their_definition() -> None:
    """Two positions by hand: p = (3/4, 1/4) against q = (1/2, 1/2), and p = q."""
    reference = torch.log(torch.tensor([[0.75, 0.25], [0.5, 0.5]]))
    tuned = torch.log(torch.tensor([[0.5, 0.5], [0.5, 0.5]]))
    found = agreement([compare(reference, tuned, torch.tensor([0, 1]))])
    assert math.isclose(found.perplexity_reference, (0.75 * 0.5) ** -0.5, rel_tol=1e-6)
    assert math.isclose(found.perplexity, 2.0, rel_tol=1e-6)
    assert math.isclose(found.difference, math.log(1.5) / 2, rel_tol=1e-6)
    assert math.isclose(found.kl_mean, (0.75 * math.log(1.5) + 0.25 * math.log(0.5)) / 2, rel_tol=1e-6)


def test_the_verb_writes_its_verdict_into_the_journal(
    path: Path, software_device: str, places: Places, tmp_path: Path
) -> None:
    folders = ("--state", str(tmp_path / "state"), "--cache", str(places.cache))
    amount = ("--window", "48", "--windows", "1", "--tokens", "4", "--because", "after a new driver")
    assert run(("confirm", str(path), "--device", software_device, *amount, *folders)) == 0
    history = History.of(Journal(tmp_path / "state" / "journal"))
    (found,) = history.confirmations
    assert (found.model, found.right, found.failed) == (path.name, True, ())
    assert found.facts["agreement"]["tokens"] == 47
    (told,) = history.runs.values()
    assert (told.verb, told.because, told.ended) == ("confirm", "after a new driver", "end")
    assert told.command[:2] == ("confirm", str(path))
    assert told.identity is not None
    assert "llvmpipe" in told.identity.device


def test_a_short_text_is_refused_before_a_model_is_loaded(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def loaded(*_: Any, **__: Any) -> None:
        raise AssertionError("loaded")

    monkeypatch.setattr("warptile.confirm.confirming.load_model", loaded)
    text = tmp_path / "short.txt"
    text.write_text("a few words", encoding="utf-8")
    assert run(["confirm", str(path), "--device", "vulkan:0", "--text", str(text)]) == 2
    assert "shorter than a window of 512" in capsys.readouterr().err


def test_rates_leave_out_the_call_that_compiles() -> None:
    from warptile.confirm.confirming import _rate

    assert _rate([]) == 0.0
    assert _rate([2.0]) == 0.5
    assert _rate([30.0, 0.5, 0.25, 0.5]) == 2.0
