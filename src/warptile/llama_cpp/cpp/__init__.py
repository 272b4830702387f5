"""A reader for the part of C++ (and of GLSL's preprocessor) that llama.cpp chooses its Vulkan pipelines with.

What is outside that part is never guessed: it becomes an `Unknown` that names file and line.
"""

from warptile.llama_cpp.cpp.evaluate import Evaluator
from warptile.llama_cpp.cpp.parse import parse_body, parse_expression
from warptile.llama_cpp.cpp.preprocess import Preprocessor
from warptile.llama_cpp.cpp.tokens import Token, tokenize
from warptile.llama_cpp.cpp.values import NotUnderstood, Record, Sequence, Symbol, Unknown

__all__ = [
    "Evaluator",
    "NotUnderstood",
    "Preprocessor",
    "Record",
    "Sequence",
    "Symbol",
    "Token",
    "Unknown",
    "parse_body",
    "parse_expression",
    "tokenize",
]
