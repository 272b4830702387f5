"""One sequence through a decoder model in few launches, over a cache that never moves; a step may be captured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import triton

from warptile.model.step import attention_device, device
from warptile.model.step.parts import Layer, Linears, Norm, layers_of, one
from warptile.runtimes.triton.engine import engine_of

SPLITS = 16
"""Parts that the keys of one token's attention are cut into at most."""

KEYS_ONE = (128, 64, 32, 16)
"""Keys that a program of one token's attention takes at once, the most whose tiles of k and v fit shared memory with a
quarter to spare, and `KEPT_ONE` elements, which a program of eight warps can hold in registers."""

KEPT_ONE = 1 << 14
ELEMENTS_A_WARP = 1 << 11

GATED_BLOCK = 1024
PICK_BLOCK = 1024
HEADS_A_BLOCK = 8
LEAST_ROWS = 16
HOPPER = 9
SHAPES = ((128, 128, 8, 2), (128, 64, 8, 2), (64, 64, 4, 2), (64, 32, 4, 1), (16, 32, 4, 1))
"""Rows, keys, warps and stages of attention over many tokens, the largest first."""


@dataclass(frozen=True)
class Sizes:
    """Heads, key heads, width of a head, of a token, and tokens there is room for."""

    heads: int
    key_heads: int
    head: int
    hidden: int
    length: int


class Step:
    """y = logits of the last of some tokens that follow those in the cache: f[1, vocabulary].

    position: i32[1] on the device, how many tokens are in the cache; who calls `forward` moves it on. token: i64[1, 1]
    and found: i64[length + 1], what `pick` writes: the likeliest next token, and it again at the place of the token
    before it. Sums are fp32; what transformers rounds to the model's type between operators is rounded there or left in
    fp32, never rounded where it does not.
    """

    def __init__(self, model: Any, layers: list[Layer], length: int) -> None:
        config = model.config
        where: torch.device = model.device
        self.model, self.layers, self.device = model, layers, where
        head = int(getattr(config, "head_dim", 0) or config.hidden_size // config.num_attention_heads)
        self.sizes = Sizes(config.num_attention_heads, config.num_key_value_heads, head, config.hidden_size, length)
        self.position = torch.zeros(1, dtype=torch.int32, device=where)
        self.token = torch.zeros((1, 1), dtype=torch.long, device=where)
        self.found = torch.zeros(length + 1, dtype=torch.long, device=where)
        s = self.sizes
        shape = (len(layers), 2, s.key_heads, length, head)
        self.cache = torch.zeros(shape, dtype=model.dtype, device=where)
        self._angles = _angles(model, {layer.kind for layer in layers}, length)
        group = s.heads // s.key_heads
        self._part = torch.empty(s.key_heads * SPLITS * group * (head + 2), dtype=torch.float32, device=where)
        self._counts = torch.zeros((len(layers), s.key_heads), dtype=torch.int32, device=where)
        picks = triton.cdiv(int(config.vocab_size), PICK_BLOCK)
        self._values = torch.empty(picks, dtype=torch.float32, device=where)
        self._indices = torch.empty(picks, dtype=torch.int32, device=where)
        self._picked = torch.zeros(1, dtype=torch.int32, device=where)
        self._final = Norm.of(model.model.norm)
        room = engine_of(where).limits.shared_bytes
        self._keys = next(
            (
                n
                for n in KEYS_ONE
                if 5 * n * _width(head) * model.dtype.itemsize <= 2 * room and n * _width(head) <= KEPT_ONE
            ),
            KEYS_ONE[-1],
        )
        self._shape = _shape_of(room, head, model.dtype.itemsize)
        early = where.type == "cuda" and torch.version.hip is None
        self._pdl = early and torch.cuda.get_device_capability(where)[0] >= HOPPER
        self._early: dict[str, Any] = {"PDL": self._pdl} | ({"launch_pdl": True} if self._pdl else {})

    @classmethod
    def of(cls, model: Any, length: int) -> Step | None:
        """A step with room for `length` tokens; None where the model's architecture is not one that is known here."""
        layers = layers_of(model)
        return None if layers is None else cls(model, layers, length)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits of the last of ids i64[1, tokens]. Their keys and values are put behind those of `position` tokens."""
        model = self.model.model
        x = model.embed_tokens(ids)[0].contiguous()
        last, added, after = len(self.layers) - 1, None, None
        for i, layer in enumerate(self.layers):
            y = self._add_norm(x, added, after, layer.norms[0])
            attended = self._attention(layer, i, y)
            if i == last:
                # What follows is asked of the last token alone.
                x, attended = x[-1:], attended[-1:]
            y = one(layer.output, attended)
            y = self._add_norm(x, y, layer.after and layer.after[0], layer.norms[1])
            added, after = self._inner(layer, y), layer.after and layer.after[1]
        y = self._add_norm(x, added, after, self._final)
        return one(self.model.lm_head, y)

    def warm(self, tokens: int) -> None:
        """Compile the parts between matmuls for so many tokens, by running them on zeros while the cache is empty."""
        s = self.sizes
        zeros = {"dtype": self.cache.dtype, "device": self.device}
        for layer in {(layer.window > 0): layer for layer in self.layers}.values():
            x = torch.zeros((tokens, s.hidden), **zeros)
            self._add_norm(x, None, None, layer.norms[0])
            self._add_norm(x, x.clone(), layer.after and layer.after[0], layer.norms[1])
            wide = [heads * s.head for heads in (s.heads, s.key_heads, s.key_heads)]
            self._attended(layer, 0, *torch.zeros((tokens, sum(wide)), **zeros).split(wide, dim=1))
            if isinstance(layer.inner, tuple):
                inner = layer.inner[0].outputs()
                self._gated(layer, *torch.zeros((tokens, sum(inner)), **zeros).split(inner, dim=1))
        self.pick(torch.zeros((1, int(self.model.config.vocab_size)), **zeros))
        self.position.zero_()

    def pick(self, logits: torch.Tensor) -> None:
        """The likeliest token of `logits` into `token` and `found`; `position` moves on by one."""
        count = logits.shape[-1]
        programs = triton.cdiv(count, PICK_BLOCK)
        device.pick[(programs,)](
            logits, self._values, self._indices, self._picked, self.position, self.token, self.found, count,
            BLOCK=PICK_BLOCK, PROGRAMS=triton.next_power_of_2(programs), num_warps=4, **self._early,
        )  # fmt: skip

    def _add_norm(self, x: torch.Tensor, y: torch.Tensor | None, after: Norm | None, norm: Norm) -> torch.Tensor:
        """norm(x), where y is given of x + y, which is written to x; y normed first by `after`."""
        out = torch.empty_like(x)
        block = triton.next_power_of_2(x.shape[1])
        added = x if y is None else y.contiguous()
        device.add_norm[(x.shape[0],)](
            x, added, norm.weight if after is None else after.weight, norm.weight, out, x.shape[1], norm.eps,
            norm.offset, ADD=y is not None, AFTER=after is not None, BLOCK=block,
            num_warps=max(1, min(16, block // 256)), **self._early,
        )  # fmt: skip
        return out

    def _attention(self, layer: Layer, index: int, x: torch.Tensor) -> torch.Tensor:
        """[tokens, heads * D] before the output matmul."""
        q, k, v = layer.inputs.products(x)
        return self._attended(layer, index, q, k, v)

    def _attended(self, layer: Layer, index: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        s, tokens = self.sizes, q.shape[0]
        biases = layer.inputs.biases()
        keys, values = self.cache[index]
        cos, sin = self._angles[layer.kind]
        norms = layer.head_norms
        same = (*(biases or (q, k, v)), *((n.weight for n in norms) if norms else (q, k)), cos, sin, self.position)
        eps, offset = (norms[0].eps, norms[0].offset) if norms else (0.0, 0.0)
        common = {"BIAS": biases is not None, "NORM": norms is not None, "D": s.head, "W": _width(s.head)}
        out = torch.empty((tokens, s.heads * s.head), dtype=q.dtype, device=q.device)
        group = s.heads // s.key_heads
        if tokens == 1:
            heads = triton.next_power_of_2(group)
            attention_device.attend_one[(s.key_heads, SPLITS)](
                q, k, v, *same, keys, values, out, self._part, self._counts[index], s.length, eps, offset, layer.scale,
                **common, GROUP=group, WINDOW=layer.window,
                ROWS=max(LEAST_ROWS, heads), LEAST=max(LEAST_ROWS, heads) // heads,
                KEYS=self._keys, SPLITS=SPLITS, num_warps=max(4, self._keys * _width(s.head) // ELEMENTS_A_WARP),
                num_stages=2, **self._early,
            )  # fmt: skip
            return out
        turned = torch.empty_like(out)
        blocks = triton.cdiv(s.heads, HEADS_A_BLOCK) + 2 * triton.cdiv(s.key_heads, HEADS_A_BLOCK)
        attention_device.rotate[(tokens, blocks)](
            q, k, v, *same, turned, keys, values, q.stride(0), k.stride(0), v.stride(0), s.heads, s.key_heads,
            s.length, eps, offset, **common, BLOCK=HEADS_A_BLOCK, num_warps=4, **self._early,
        )  # fmt: skip
        rows, keys_at_once, warps, stages = self._shape
        attention_device.attend_many[(triton.cdiv(tokens, rows), s.heads)](
            turned, keys, values, out, self.position, tokens, s.heads, s.length, layer.scale,
            GROUP=group, WINDOW=layer.window, D=s.head, W=_width(s.head), ROWS=rows, KEYS=keys_at_once,
            num_warps=warps, num_stages=stages, **self._early,
        )  # fmt: skip
        return out

    def _inner(self, layer: Layer, x: torch.Tensor) -> torch.Tensor:
        if not isinstance(layer.inner, tuple):
            found = layer.inner(x[None])
            return (found[0] if isinstance(found, tuple) else found).reshape(x.shape)
        linears, down = layer.inner
        return one(down, self._gated(layer, *linears.products(x)))

    def _gated(self, layer: Layer, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        rows, width = gate.shape
        out = torch.empty((rows, width), dtype=gate.dtype, device=gate.device)
        device.gated[(triton.cdiv(width, GATED_BLOCK), rows)](
            gate, up, out, width, gate.stride(0), up.stride(0), GELU=layer.gelu, BLOCK=GATED_BLOCK,
            num_warps=4, **self._early,
        )  # fmt: skip
        return out


def _width(head: int) -> int:
    return max(LEAST_ROWS, 1 << (head - 1).bit_length())


def _shape_of(shared_bytes: int, head: int, item: int) -> tuple[int, int, int, int]:
    """The largest of `SHAPES` whose tiles of q, k and v fit shared memory twice where they are staged."""
    for rows, keys, warps, stages in SHAPES:
        needed = (rows + 2 * keys * stages) * _width(head) * item
        # Sums stay in registers: at most 128 a thread.
        if needed <= shared_bytes and rows * _width(head) <= 128 * 32 * warps:
            return rows, keys, warps, stages
    return SHAPES[-1]


def _angles(model: Any, kinds: set[str], length: int) -> Mapping[str, tuple[torch.Tensor, torch.Tensor]]:
    """(cos, sin) fp32[length, D] of each kind of layer, as transformers' own rotary module computes them."""
    rotary: Callable[..., Any] = model.model.rotary_emb
    where = model.device
    places = torch.arange(length, device=where)[None]
    like = torch.empty(0, dtype=torch.float32, device=where)
    several = model.config.model_type.startswith("gemma")
    found = {}
    with torch.no_grad():
        for kind in kinds:
            cos, sin = rotary(like, places, kind) if several else rotary(like, places)
            found[kind] = cos[0].float().contiguous(), sin[0].float().contiguous()
    return found


__all__ = ["Linears", "Step"]
