"""A step of few launches that computes something else than transformers' modules writes other text than the model's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import warptile
from warptile.contracts import UnusableInput
from warptile.places import Places

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("triton")
from support.tiny_models import write_tiny  # noqa: E402
from transformers import DynamicCache  # noqa: E402

from warptile.model.runner import Runner  # noqa: E402
from warptile.model.step import Step  # noqa: E402
from warptile.model.step import step as step_module  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::warptile.routing.UntunedWarning")

# What a layer adds to what the one before it left is seen with two; the others differ within a layer.
ARCHITECTURES = [("llama", 2), ("qwen2", 1), ("qwen3", 1), ("gemma3", 2), ("qwen3moe", 1)]

# fp32 throughout: sums over k <= 96 in another order, through two layers, their norms and a softmax: some hundred units
# in the last place of logits below 8.
CLOSE = 300 * 2.0**-21
TOKENS = 19
"""More than Gemma's window of 16."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    return tmp_path_factory.mktemp("models")


@pytest.mark.parametrize(("architecture", "layers"), ARCHITECTURES)
def test_step_is_the_model(folder: Path, architecture: str, layers: int) -> None:
    path = write_tiny(folder / f"{architecture}.gguf", architecture, layers=layers)
    model, _ = warptile.load(path, "cpu", dense=True)
    ids = torch.randint(0, 256, (1, TOKENS + 2), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        wanted = model(ids, cache=DynamicCache(config=model.config), use_cache=True).logits[0]
    step = Step.of(model, 64)
    assert step is not None
    step.warm(2)
    done = 0
    # A prompt, more of it behind what is cached, and tokens one by one.
    for count in (TOKENS - 3, 3, 1, 1):
        logits = step.forward(ids[:, done : done + count])
        done += count
        step.position.fill_(done)
        assert (logits[0] - wanted[done - 1]).abs().max() < CLOSE


def test_tokens_that_stay_on_the_device_are_those_of_the_model(
    folder: Path, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Parts of 16 keys: a head's are spread over two programs, the last of which joins them.
    monkeypatch.setattr(step_module, "KEYS_ONE", (16,))
    path = write_tiny(folder / "packed.gguf", "qwen3", tied=True, layers=1)
    model, _ = warptile.load(path, "interpreter:0", places=places, dtype=torch.float32)
    plain, _ = warptile.load(path, "cpu", dense=True)
    ids = torch.randint(0, 256, (16,), generator=torch.Generator().manual_seed(2))
    own, other = Runner(model, 32), Runner(plain, 32)
    first = int(own.prefill(ids).argmax())
    other.prefill(ids)
    own.mark()
    other.mark()
    for _ in range(2):
        assert own.decode(first, 2).tolist() == other.decode(first, 2).tolist()
        own.restore()
        other.restore()
    # Operands of packed matmuls are fp16: 2^-11 of each, and five matmuls deep.
    wanted = other.step(first)
    assert (own.step(first) - wanted).abs().max() < 16 * 2.0**-11 * wanted.abs().max()
    with pytest.raises(UnusableInput, match="there is room for 32 tokens"):
        own.decode(first, 40)


# In a process without Triton's interpreter, which takes what the compiler refuses: all lowered, one assembled.
HOPPER = """
import triton
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.compiler import make_backend
from warptile import formats
from warptile.layouts.triton import repack, repack_device
from warptile.model.step import attention_device, device
kinds = {"X": "*fp16", "Y": "*fp16", "After": "*fp16", "Weight": "*fp16", "Out": "*fp16"}
kinds |= {n: "*fp16" for n in ("Gate", "Up", "Logits", "Q", "K", "V", "QBias", "KBias", "VBias", "QNorm", "KNorm")}
kinds |= {n: "*fp16" for n in ("Turned", "Keys", "Values")}
kinds |= {n: "*fp32" for n in ("Cos", "Sin", "Part")} | {n: "fp32" for n in ("eps", "offset", "scale")}
kinds |= {"Position": "*i32", "Count": "*i32", "Indices": "*i32", "Token": "*i64", "Found": "*i64"}
flags = {"BIAS": True, "NORM": True, "GROUP": 4, "WINDOW": 64, "D": 16, "W": 16, "ROWS": 16, "LEAST": 4, "KEYS": 16}
flags |= {"SPLITS": 4, "ADD": True, "AFTER": True, "BLOCK": 256, "GELU": True, "PROGRAMS": 4, "PDL": True}
target, options = GPUTarget("cuda", 90, 32), {"num_warps": 1, "launch_pdl": True}
backend = make_backend(target)
parsed = backend.parse_options(options)
functions = backend.get_codegen_implementation(parsed)
def source(function):
    given = {n: flags[n] for n in function.arg_names if n in flags}
    signature = {n: "constexpr" if n in given else kinds.get(n, "i32") for n in function.arg_names}
    return ASTSource(fn=function, signature=signature, constexprs=given)
for function in (device.gated, device.pick, attention_device.rotate, attention_device.attend_many,
                 attention_device.attend_one, repack_device.move_rows):
    if function is repack_device.move_rows:
        del flags["W"]
        kinds |= {"Source": "*u8", "W": "*i32", "Tables": "*i32", "Out": "*u8"}
        # What packing itself takes for rows of 128 elements.
        plan = repack._plan(formats.by_name("Q8_0"), 128, "cpu")
        flags |= {"PLANES": plan.constants, "UNIT": plan.unit, "STEPS": 4, "L": plan.parameters}
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    source(function).make_ir(target, parsed, functions, backend.get_module_map(), context)
print(triton.compile(source(device.add_norm), target=target, options=options).asm["ptx"])
"""


def test_a_hopper_card_starts_early(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {"TRITON_CACHE_DIR": str(tmp_path)}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run([sys.executable, "-c", HOPPER], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "griddepcontrol.launch_dependents" in done.stdout
    assert "griddepcontrol.wait" in done.stdout
