"""torch.compile silently read views of packed weights wrongly: without a custom op and a fake of its own, a graph may
put another view in the place of the words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.mutants.planting import Lab, Mutant, Spoken


def run(lab: Lab, planted: bool) -> Spoken:
    """`torch.library.opcheck` of the shipped op, and of one like it that says nothing of giving its argument back."""
    torch: Any = pytest.importorskip("torch")
    lab.interpreter  # noqa: B018
    from warptile import formats
    from warptile.proof.weights import random_blocks
    from warptile.torch_ops import TorchWeight
    from warptile.weights import QuantTensor

    fmt = formats.by_name("Q8_0")
    w = QuantTensor.from_blocks(fmt, random_blocks(fmt, 16 * 4, np.random.default_rng(0)), (16, 128))
    words = TorchWeight.pack(w, "cpu").words
    x = torch.ones((2, 128), dtype=torch.float16)
    if not planted:
        tile = "triton.gemv:tile_n=8,tile_m=2,steps=1,warps=1"
        operands = (x, words, "Q8_0", 16, 128, tile, False)
        torch.library.opcheck(
            torch.ops.warptile.matmul.default, operands, test_utils=("test_schema", "test_faketensor")
        )
        return Spoken("")
    library = torch.library.Library("warptile_mutant", "FRAGMENT")
    library.define("matmul(Tensor x, Tensor words) -> Tensor")
    library.impl("matmul", lambda x, words: words.view(torch.float16)[: x.shape[0]], "CompositeExplicitAutograd")
    torch.library.register_fake("warptile_mutant::matmul", lambda x, words: x.new_empty(x.shape[0]), lib=library)
    try:
        torch.library.opcheck(
            torch.ops.warptile_mutant.matmul.default, (x, words), test_utils=("test_schema", "test_faketensor")
        )
    except Exception as error:
        return Spoken("opcheck", str(error).splitlines()[0])
    return Spoken("")


MUTANT = Mutant(20, "an op gives a view of the packed words back as its result", "opcheck", "interpreter", run)
