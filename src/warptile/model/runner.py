"""Prefill and greedy decode of one sequence, with CUDA graphs on a card."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import DynamicCache, StaticCache

from warptile.contracts import UnusableInput
from warptile.model.cuda import TorchBackend, compile_ahead
from warptile.model.step import Step

CHUNKS = (2048, 512)
"""Tokens of a prefill that one captured graph takes, the largest first."""


@dataclass
class _Graph:
    """A captured step over tokens i64[1, n] that it reads from `tokens`, and leaves `logits` [1, vocabulary] of."""

    graph: torch.cuda.CUDAGraph
    tokens: torch.Tensor
    logits: torch.Tensor


class Runner:
    """A model with room for `length` tokens.

    fused: whether `Step` computes what lies between the matmuls, else transformers' modules do; None: where the weights
    are packed on a card and the architecture is known. graphs: whether steps are captured; None: on a card, unless
    transformers' layers keep a sliding window, whose cache decides on the host. A prefill is cut into `chunks`, each
    captured when its length comes a second time; the rest runs as it is. replay: set it to False to run the same steps
    kernel by kernel, for a profiler. Raises UnusableInput where the model's context is shorter than `length`, or graphs
    or a fused step are asked for where there are none.
    """

    def __init__(
        self,
        model: Any,
        length: int,
        graphs: bool | None = None,
        chunks: Sequence[int] = CHUNKS,
        fused: bool | None = None,
    ) -> None:
        most = int(model.config.max_position_embeddings)
        if length > most:
            raise UnusableInput(f"{length} tokens are asked for; the model's context holds {most}")
        self.model, self.length, self.position = model, length, 0
        self.device: torch.device = model.device
        sliding = "sliding_attention" in (getattr(model.config, "layer_types", None) or ())
        self._step = None if fused is False or (fused is None and not _on_a_card(model)) else Step.of(model, length)
        if fused and self._step is None:
            raise UnusableInput(f"the architecture {model.config.model_type} has no fused step")
        able = self.device.type == "cuda" and (self._step is not None or not sliding)
        if graphs and not able:
            raise UnusableInput("CUDA graphs need a card and a model without sliding windows")
        self.graphs = able if graphs is None else graphs
        self.replay = True
        self._chunks = tuple(sorted(chunks, reverse=True))
        self._seen: set[int] = set()
        self._compiled: set[int] = set()
        if self._step is not None and self.device.type == "cuda":
            # Here, while the matmuls of a model that was just loaded are compiled by other processes.
            for tokens in (1, *(chunk for chunk in self._chunks[-1:] if chunk <= length)):
                self._step.warm(tokens)
        self._captured: dict[int, _Graph] = {}
        self._cache: Any = None
        self._marked: tuple[int, Any] = (0, None)
        self.reset()

    def reset(self) -> None:
        """Forget every token, and the mark."""
        self.position, self._marked = 0, (0, None)
        if self._step is None and (not self.graphs or self._cache is None):
            self._cache = self._new_cache()
        else:
            self._place(0)

    def mark(self) -> None:
        """Remember the tokens that are there, for `restore`."""
        self._marked = (self.position, None if self._stays() else copy.deepcopy(self._cache))

    def restore(self) -> None:
        """Forget what came after `mark`; after none, everything."""
        self.position, kept = self._marked
        if self._stays():
            self._place(self.position)
        else:
            self._cache = self._new_cache() if kept is None else copy.deepcopy(kept)

    def prefill(self, tokens: Sequence[int] | torch.Tensor) -> torch.Tensor:
        """Logits f32[vocabulary] after the last of `tokens`, which follow those that are there."""
        ids = torch.as_tensor(tokens, dtype=torch.long, device=self.device).reshape(1, -1)
        logits = torch.empty(0)
        done = 0
        while done < ids.shape[1]:
            left = ids.shape[1] - done
            chunk = next((c for c in self._chunks if c <= left), left) if self.graphs else left
            self._compile(chunk)
            again = chunk in self._seen and chunk in self._chunks
            self._seen.add(chunk)
            logits = self._advance(ids[:, done : done + chunk], self.graphs and again)
            done += chunk
        return logits[0].float()

    def decode(self, token: int | torch.Tensor, count: int) -> torch.Tensor:
        """The `count` tokens i64[count] that greedily follow `token`, which itself is not in the cache yet.

        On a card nothing waits for the device.
        """
        if self._step is not None:
            return self._decode_there(self._step, token, count)
        current = torch.as_tensor(token, dtype=torch.long, device=self.device).reshape(1, 1)
        found = torch.empty(count, dtype=torch.long, device=self.device)
        for i in range(count):
            logits = self._advance(current, self.graphs)
            current = logits.argmax(dim=-1, keepdim=True)
            found[i] = current[0, 0]
        return found

    def step(self, token: int | torch.Tensor) -> torch.Tensor:
        """Logits f32[vocabulary] after one more token."""
        current = torch.as_tensor(token, dtype=torch.long, device=self.device).reshape(1, 1)
        return self._advance(current, self.graphs)[0].float()

    def _decode_there(self, step: Step, token: int | torch.Tensor, count: int) -> torch.Tensor:
        """`decode` without the host between tokens: each step leaves the next token where it reads it."""
        self._refuse_full(count)
        self._compile(1)
        step.token.copy_(torch.as_tensor(token, dtype=torch.long).reshape(1, 1))
        start = self.position
        if self.graphs and self.replay and count:
            self._captured.get(1) or self._capture(1)
            step.token.copy_(torch.as_tensor(token, dtype=torch.long).reshape(1, 1))
        for _ in range(count):
            if self.graphs and self.replay:
                self._captured[1].graph.replay()
            else:
                with torch.no_grad():
                    step.pick(step.forward(step.token))
        self.position += count
        return step.found[start : self.position].clone()

    def _compile(self, tokens: int) -> None:
        """Compile what so many tokens need, side by side."""
        if self.device.type == "cuda" and tokens not in self._compiled:
            self._compiled |= {1, tokens}
            compile_ahead(self.model, self.model.dtype, {1, tokens})

    def _advance(self, ids: torch.Tensor, captured: bool) -> torch.Tensor:
        count = ids.shape[1]
        self._refuse_full(count)
        if captured and self.replay:
            graph = self._captured.get(count) or self._capture(count)
            graph.tokens.copy_(ids)
            graph.graph.replay()
            logits = graph.logits
        else:
            logits = self._forward(ids)
        self.position += count
        return logits

    def _refuse_full(self, count: int) -> None:
        if self.position + count > self.length:
            raise UnusableInput(f"there is room for {self.length} tokens, {self.position + count} are asked for")

    def _forward(self, ids: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            if self._step is not None:
                logits = self._step.forward(ids)
                if ids.shape[1] == 1:
                    self._step.pick(logits)
                else:
                    self._step.position += ids.shape[1]
                return logits
            found = self.model(input_ids=ids, cache=self._cache, use_cache=True, logits_to_keep=1)
        last: torch.Tensor = found.logits[:, -1]
        return last

    def _capture(self, count: int) -> _Graph:
        start = self.position
        tokens = torch.zeros((1, count), dtype=torch.long, device=self.device)
        if self._step is not None and count == 1:
            tokens = self._step.token
        side = torch.cuda.Stream(self.device)
        side.wait_stream(torch.cuda.current_stream(self.device))
        # Kernels are compiled and the cache laid out before anything is captured.
        with torch.cuda.stream(side):
            self._forward(tokens)
        torch.cuda.current_stream(self.device).wait_stream(side)
        self._place(start)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            logits = self._forward(tokens)
        self._place(start)
        self._captured[count] = _Graph(graph, tokens, logits)
        return self._captured[count]

    def _place(self, position: int) -> None:
        if self._step is not None:
            self._step.position.fill_(position)
            return
        for layer in self._cache.layers:
            layer.cumulative_length.fill_(position)

    def _stays(self) -> bool:
        """Whether the cache's memory stays where it is, so that tokens are forgotten by their number alone."""
        return self.graphs or self._step is not None

    def _new_cache(self) -> Any:
        if self.graphs:
            return StaticCache(config=self.model.config, max_cache_len=self.length)
        return DynamicCache(config=self.model.config)


def _on_a_card(model: Any) -> bool:
    """Whether a model's weights are packed in torch's memory."""
    plan = getattr(getattr(model, "hf_quantizer", None), "plan", None)
    return isinstance(getattr(plan, "backend", None), TorchBackend)
