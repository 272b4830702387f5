"""The tokenizer that a GGUF describes, as transformers builds it."""

from __future__ import annotations

from typing import Any

from transformers import PreTrainedTokenizerFast

from warptile.contracts import UnusableInput
from warptile.gguf import GGUFFile
from warptile.gguf.escape import shown

_NEEDED = {
    "tokenizer.ggml.model": "the kind of tokenizer",
    "tokenizer.ggml.tokens": "the vocabulary",
}


def tokenizer_of(file: GGUFFile) -> Any:
    """Raises UnusableInput where data of the tokenizer are missing, or transformers cannot build one from them."""
    for key, what in _NEEDED.items():
        if key not in file.metadata:
            raise UnusableInput(f"{shown(file.path)}: no {key} ({what}) in the metadata: no tokenizer can be built")
    if file.metadata["tokenizer.ggml.model"] == "gpt2" and "tokenizer.ggml.merges" not in file.metadata:
        raise UnusableInput(f"{shown(file.path)}: no tokenizer.ggml.merges (the merges of its byte pairs)")
    first = file.parts[0].resolve()
    try:
        return PreTrainedTokenizerFast.from_pretrained(str(first.parent), gguf_file=first.name)
    except Exception as error:  # tokenizers raises nothing more special
        reason = " ".join(str(error).split())
        raise UnusableInput(f"{shown(file.path)}: transformers builds no tokenizer from it: {reason}") from None
