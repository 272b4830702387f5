"""A SPIR-V module as lists of instructions, in the sections that the specification orders them in (section 2.4)."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from warptile.contracts.errors import CompileFailed
from warptile.runtimes.vulkan.instrument import spirv_ops as op

MAGIC = 0x07230203

_SECTIONS: tuple[tuple[str, frozenset[int]], ...] = (
    ("capabilities", frozenset({op.CAPABILITY})),
    ("extensions", frozenset({op.EXTENSION})),
    ("imports", frozenset({op.EXT_INST_IMPORT})),
    ("memory_model", frozenset({op.MEMORY_MODEL})),
    ("entries", frozenset({op.ENTRY_POINT})),
    ("modes", frozenset({op.EXECUTION_MODE, op.EXECUTION_MODE_ID})),
    ("sources", frozenset({op.STRING, op.SOURCE, op.SOURCE_CONTINUED, op.SOURCE_EXTENSION})),
    ("names", frozenset({op.NAME, op.MEMBER_NAME})),
    ("processed", frozenset({op.MODULE_PROCESSED})),
    (
        "annotations",
        frozenset(
            {
                op.DECORATE,
                op.MEMBER_DECORATE,
                op.DECORATION_GROUP,
                op.GROUP_DECORATE,
                op.GROUP_MEMBER_DECORATE,
                op.DECORATE_ID,
                op.DECORATE_STRING,
                op.MEMBER_DECORATE_STRING,
            }
        ),
    ),
)
_SECTION_OF = {opcode: name for name, opcodes in _SECTIONS for opcode in opcodes}


@dataclass
class Instruction:
    """An opcode and the words after the first; strings are words too."""

    opcode: int
    words: list[int]

    def encoded(self) -> list[int]:
        """With its first word, (length << 16) | opcode."""
        return [(len(self.words) + 1) << 16 | self.opcode, *self.words]


@dataclass
class Module:
    """version: the header's. bound: one more than the largest id. `globals`: types, constants, variables."""

    version: int
    bound: int
    capabilities: list[Instruction] = field(default_factory=list)
    extensions: list[Instruction] = field(default_factory=list)
    imports: list[Instruction] = field(default_factory=list)
    memory_model: list[Instruction] = field(default_factory=list)
    entries: list[Instruction] = field(default_factory=list)
    modes: list[Instruction] = field(default_factory=list)
    sources: list[Instruction] = field(default_factory=list)
    names: list[Instruction] = field(default_factory=list)
    processed: list[Instruction] = field(default_factory=list)
    annotations: list[Instruction] = field(default_factory=list)
    globals: list[Instruction] = field(default_factory=list)
    functions: list[Instruction] = field(default_factory=list)

    @staticmethod
    def parse(binary: bytes) -> Module:
        """Read a module. Raises CompileFailed for what is none."""
        if len(binary) < 20 or len(binary) % 4:
            raise CompileFailed(f"no SPIR-V module: {len(binary)} bytes")
        words = struct.unpack(f"<{len(binary) // 4}I", binary)
        if words[0] != MAGIC:
            raise CompileFailed(f"no SPIR-V module: it begins with {words[0]:#x}")
        module = Module(words[1], words[3])
        for each in _instructions(words):
            if module.functions or each.opcode == op.FUNCTION:
                module.functions.append(each)
            else:
                module.section(_SECTION_OF.get(each.opcode, "globals")).append(each)
        return module

    def encode(self) -> bytes:
        """The module's bytes."""
        words = [MAGIC, self.version, 0, self.bound, 0]
        for name in (*(name for name, _ in _SECTIONS), "globals", "functions"):
            for each in self.section(name):
                words += each.encoded()
        return struct.pack(f"<{len(words)}I", *words)

    def section(self, name: str) -> list[Instruction]:
        """The list of a section."""
        found: list[Instruction] = getattr(self, name)
        return found

    def new_id(self) -> int:
        """An id that nothing has yet."""
        self.bound += 1
        return self.bound - 1

    def names_of(self) -> dict[int, str]:
        """What OpName says, by id."""
        return {each.words[0]: text_of(each.words[1:]) for each in self.names if each.opcode == op.NAME}

    def decoration(self, target: int, kind: int) -> int | None:
        """The first literal of a decoration; 0 where it has none; None where the target is not decorated so."""
        for each in self.annotations:
            if each.opcode == op.DECORATE and each.words[0] == target and each.words[1] == kind:
                return each.words[2] if len(each.words) > 2 else 0
        return None

    def has_capability(self, number: int) -> bool:
        """Whether it declares a capability."""
        return any(each.words[0] == number for each in self.capabilities)

    @property
    def vulkan_memory_model(self) -> bool:
        """Whether its memory model is Vulkan's, not GLSL450's."""
        return any(each.words[1] == op.VULKAN_MEMORY_MODEL for each in self.memory_model)


def text_of(words: Sequence[int]) -> str:
    """A literal string's text."""
    raw = struct.pack(f"<{len(words)}I", *words)
    return raw.split(b"\0", 1)[0].decode("utf-8", "replace")


def string_words(words: Sequence[int]) -> int:
    """How many words a literal string takes: up to the one that holds a zero byte."""
    for count, word in enumerate(words, start=1):
        if any((word >> shift) & 255 == 0 for shift in (0, 8, 16, 24)):
            return count
    return len(words)


def interface_start(entry: Instruction) -> int:
    """Where the interface of an OpEntryPoint begins among its words."""
    return 2 + string_words(entry.words[2:])


def _instructions(words: Sequence[int]) -> Iterator[Instruction]:
    at = 5
    while at < len(words):
        length, opcode = words[at] >> 16, words[at] & 0xFFFF
        if length == 0 or at + length > len(words):
            raise CompileFailed(f"no SPIR-V module: broken instruction at word {at}")
        yield Instruction(opcode, list(words[at + 1 : at + length]))
        at += length


def flat(parts: Iterable[Iterable[Instruction]]) -> list[Instruction]:
    """Several runs of instructions as one."""
    return [each for part in parts for each in part]
