"""Where the parts of a checkout are, and the names its host code knows."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from warptile.contracts import UnusableInput
from warptile.gguf.escape import shown
from warptile.llama_cpp.cpp.evaluate import Evaluator
from warptile.llama_cpp.cpp.parse import Parser, parse_body
from warptile.llama_cpp.cpp.preprocess import Preprocessor, integer_defines
from warptile.llama_cpp.cpp.scopes import Closure, Scope
from warptile.llama_cpp.cpp.syntax import Declare
from warptile.llama_cpp.cpp.tokens import Token, without_comments
from warptile.llama_cpp.cpp.values import NotUnderstood, Value

ROOTS = ("", "vendor/llama.cpp", "llama.cpp", "external/llama.cpp", "third_party/llama.cpp")
HOSTS = (
    "ggml/src/ggml-vulkan/ggml-vulkan.cpp",
    "ggml/src/ggml-vulkan.cpp",
    "ggml-vulkan.cpp",
    "src/ggml-vulkan/ggml-vulkan.cpp",
)
GENERATOR = "vulkan-shaders-gen.cpp"
_MOST_BYTES = 16 << 20
_BUILT = re.compile(r"VK_\w+$|GGML_VULKAN_\w+_GLSLC_SUPPORT$")


def built_with(name: str) -> bool:
    """Whether a macro of the build counts as defined: every Vulkan extension and every feature of the compiler.

    What a device lacks of them is then left out by the host code's own conditions.
    """
    return _BUILT.match(name) is not None and name != "VK_HEADER_VERSION"


@dataclass(frozen=True)
class Checkout:
    """root: the checkout's folder; host: ggml-vulkan.cpp; shaders: the folder of .comp files, None in old versions."""

    root: Path
    host: Path
    shaders: Path | None

    @staticmethod
    def open(path: str | Path) -> Checkout:
        """The checkout at `path` (of llama.cpp, ggml, or a project that vendors llama.cpp).

        Raises UnusableInput where there is no folder, or no ggml-vulkan.cpp in it.
        """
        start = Path(path)
        try:
            if not start.is_dir():
                raise UnusableInput(f"{shown(start)}: no such folder")
            for root in (start / name for name in ROOTS):
                for host in (root / name for name in HOSTS):
                    if host.is_file():
                        return Checkout(root.resolve(), host.resolve(), _shaders(host))
        except (OSError, ValueError) as error:
            raise UnusableInput(f"{shown(start)}: cannot be read: {error}") from error
        raise UnusableInput(f"{shown(start)}: not a checkout of llama.cpp: it holds no {HOSTS[0]}")

    def relative(self, path: Path) -> str:
        """A file's path inside the checkout."""
        return path.relative_to(self.root).as_posix()

    def text(self, path: Path) -> str:
        """A file's text. Raises UnusableInput."""
        return read_text(path)

    def shader(self, name: str) -> Path:
        """The path of a shader source. Raises UnusableInput where this version has none of that name."""
        if self.shaders is None:
            raise UnusableInput(f"{shown(self.root)}: this version of llama.cpp has no shader sources (.comp files)")
        path = self.shaders / name
        if Path(name).name != name or not path.is_file():
            raise UnusableInput(f"{shown(self.shaders)}: no {shown(Path(name))}")
        return path

    @functools.cached_property
    def fingerprint(self) -> str:
        """16 hexadecimal digits of the hash of what its matmul shaders are built from."""
        digest = hashlib.sha256()
        folder = self.shader("mul_mm.comp").parent
        named = ("mul_mm", "quantize_q8_1", GENERATOR)
        files = sorted(p for p in folder.iterdir() if p.suffix == ".glsl" or p.name.startswith(named))
        for path in files:
            digest.update(path.name.encode() + b"\0" + read_text(path).encode() + b"\0")
        return digest.hexdigest()[:16]


@functools.lru_cache(maxsize=256)
def read_text(path: Path) -> str:
    """A text file of at most 16 MB, with its line ends as \\n. Raises UnusableInput."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UnusableInput(f"{shown(path)}: larger than the {_MOST_BYTES} bytes that are read")
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UnusableInput(f"{shown(path)}: cannot be read: {error.strerror}") from error


class Unit:
    """One source file with the headers beside it: its functions, structures, enumerators and whole-number macros.

    text: what stands for the file's own text.
    """

    def __init__(self, path: Path, headers: tuple[Path, ...] = (), text: str | None = None) -> None:
        self.path = path
        self._text = without_comments(read_text(path) if text is None else text)
        self._all = [self._text, *(without_comments(read_text(h)) for h in headers if h.is_file())]
        self._lines = self._text.split("\n")
        # Every name that a file-level line introduces: what is not among them need not be searched for.
        heads = [line for line in self._lines if line[:1].isalpha() or line[:1] == "_"]
        self._introduced = {name for line in heads for name in re.findall(r"\b(\w+)\s*[(=]", line)}
        self._names: dict[str, Value] = {}
        self._structs: dict[str, tuple[str, ...] | None] = {}
        for each in self._all:
            self._names |= integer_defines(each) | _ggml_types(each)

    def function_tokens(self, name: str) -> list[Token] | None:
        """Tokens of a function from its parameters on, macros expanded; None where the file defines none."""
        pattern = re.compile(
            rf"^[A-Za-z][^\n;={{}}#]*?\b{name}\s*(\((?:[^;{{}}]|\{{\}})*?\)\s*(?:const\s*)?\{{)", re.MULTILINE
        )
        match = pattern.search(self._text)
        if match is None:
            return None
        end = self._text.find("\n}", match.end())
        end = len(self._text) if end < 0 else end + 2
        line = self._text.count("\n", 0, match.start(1)) + 1
        return Preprocessor(assumed=built_with).run(self._text[match.start(1) : end], line)

    def resolve(self, name: str) -> Value | None:
        """A function, enumerator or macro by name; None where the files have none."""
        if name not in self._names:
            self._names[name] = self._function(name)
        return self._names[name]

    def struct_of(self, name: str) -> tuple[str, ...] | None:
        """The members of a structure in order; None where the files have none of that name."""
        if name not in self._structs:
            self._structs[name] = next(filter(None, (_struct(text, name) for text in self._all)), None)
        return self._structs[name]

    def lines(self, word: str) -> Iterator[tuple[int, str]]:
        """The lines that hold a word, with their numbers."""
        return ((number, line) for number, line in enumerate(self._lines, 1) if word in line)

    def line(self, number: int) -> str:
        """One line, without its comment; "" where there is none."""
        return self._lines[number - 1] if 0 < number <= len(self._lines) else ""

    def _list(self, name: str) -> Value | None:
        """A list of literals at file level, or text."""
        match = re.search(rf"^[A-Za-z][^;{{}}()\n]*\b{re.escape(name)}\s*=\s*([^;]*);", self._text, re.MULTILINE)
        if match is None:
            return None
        line = self._text.count("\n", 0, match.start(1)) + 1
        try:
            value: Value = Evaluator().value(Parser(Preprocessor(assumed=built_with).run(match[1], line)).initializer())
        except NotUnderstood:
            return None
        return value

    def _function(self, name: str) -> Value | None:
        if name not in self._introduced:
            return None
        tokens = self.function_tokens(name)
        if not tokens:
            return self._list(name)
        try:
            return Closure(Parser(tokens).function(tokens[0].line), Scope())
        except NotUnderstood:
            return None


def _struct(text: str, name: str) -> tuple[str, ...] | None:
    match = re.search(rf"\bstruct\s+{re.escape(name)}\s*\{{", text) if name.isidentifier() else None
    if match is None:
        return None
    end = text.find("\n}", match.end())
    tokens = Preprocessor(assumed=built_with).run(text[match.end() : end])
    declared = [each for each in parse_body(tokens).statements if isinstance(each, Declare)]
    return tuple(d.name for each in declared for d in each.names)


def _ggml_types(text: str) -> dict[str, int]:
    """Enumerators of `enum ggml_type` with their numbers."""
    match = re.search(r"\benum\s+ggml_type\s*\{(.*?)\}", text, re.DOTALL)
    found: dict[str, int] = {}
    number = -1
    for part in (match[1] if match else "").split(","):
        name, _, value = (word.strip() for word in part.strip().partition("="))
        if not name.isidentifier():
            continue
        number = int(value, 0) if value.isdigit() else number + 1
        found[name] = number
    return found


def _shaders(host: Path) -> Path | None:
    for folder in (host.parent / "vulkan-shaders", host.parent.parent / "vulkan-shaders"):
        if (folder / "mul_mm.comp").is_file():
            return folder.resolve()
    return None
