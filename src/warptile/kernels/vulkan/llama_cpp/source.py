"""A shader of the checkout as one translation unit that glslang takes and that says on the device that it ran.

Changes, all in memory: includes are put in place; the variant's macros come first; `main` stores the build's id; two
words (the runtime's slot, the slice's first row) precede the push constants; writes to the result start at that row;
the extension for packed dot products, which glslang 13 does not know, is replaced by the same instruction through
GL_EXT_spirv_intrinsics.
"""

from __future__ import annotations

import re

from warptile.contracts import CompileFailed
from warptile.kernels.vulkan.abi import BUILD_ID_CONSTANT
from warptile.llama_cpp.checkout import read_text
from warptile.llama_cpp.shader import Shader

OWN_WORDS = ("warptile_slot", "warptile_row0")
RESULT = "data_d"
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"[ \t]*$', re.MULTILINE)
_PUSH = re.compile(r"(layout\s*\(\s*push_constant\s*\)\s*uniform\s+\w+\s*\{)")
_MAIN = re.compile(r"\bvoid\s+main\s*\(\s*\)\s*\{")
_DOT = re.compile(r"^[ \t]*#[ \t]*extension[ \t]+GL_EXT_integer_dot_product[^\n]*$", re.MULTILINE)
_DOT_INSTRUCTION = """\
#extension GL_EXT_spirv_intrinsics : require
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018], id = 4450)
int warptile_sdot4(int a, int b, spirv_literal int packed);
#define dotPacked4x8EXT(a, b) warptile_sdot4(int(a), int(b), 0)
"""


def included(shader: Shader, name: str, depth: int = 0) -> str:
    """A source of the checkout with every include put in place. Raises CompileFailed where they nest without end."""
    if depth > 16:
        raise CompileFailed(f"{name}: includes nest too deeply")
    text = read_text(shader.checkout.shader(name))
    return _INCLUDE.sub(lambda match: included(shader, match[1], depth + 1), text)


def translation_unit(shader: Shader, bindings: int, result: bool = True) -> str:
    """The whole text. bindings: of the kernel, the executed ids come after them; result: whether writes are moved.

    Raises CompileFailed where the source has not the shape that is changed.
    """
    text = included(shader, shader.variant.source)
    version, _, body = text.partition("\n")
    if not version.startswith("#version"):
        raise CompileFailed(f"{shader.variant.source} does not begin with #version")
    macros = "".join(f"#define {name} {value}\n" for name, value in shader.variant.defines)
    body = _DOT.sub(lambda _: _DOT_INSTRUCTION, body)
    words = "".join(f"\n    uint {word};" for word in OWN_WORDS)
    body, pushed = _PUSH.subn(lambda match: match[1] + words, body)
    own = (
        f"layout(constant_id = {BUILD_ID_CONSTANT}) const uint WARPTILE_BUILD = 0u;\n"
        f"layout(std430, set = 0, binding = {bindings}) writeonly buffer WarptileExecuted "
        "{ uint warptile_executed[]; };\n"
    )
    mark = (
        "\n    if (gl_WorkGroupID == uvec3(0) && gl_LocalInvocationIndex == 0u)"
        f" warptile_executed[p.{OWN_WORDS[0]}] = WARPTILE_BUILD;\n"
    )
    body, entered = _MAIN.subn(lambda match: own + match[0] + mark, body)
    moved = 1
    if result:
        body, moved = re.subn(rf"\b{RESULT}\[(?!\])", f"{RESULT}[p.{OWN_WORDS[1]} + ", body)
    if pushed != 1 or entered != 1 or not moved:
        what = "push constants" if pushed != 1 else "main" if entered != 1 else f"writes to {RESULT}"
        raise CompileFailed(f"{shader.variant.source}: its {what} are not where they are expected")
    return f"{version}\n{macros}{body}"


def push_words(shader: Shader) -> tuple[str, ...]:
    """Names of the shader's own push constants in order. Raises CompileFailed where one is no 32-bit word."""
    t = shader.tokens
    start = next((i for i, token in enumerate(t) if token.text == "push_constant"), None)
    if start is None:
        raise CompileFailed(f"{shader.variant.source}: no push constants")
    at = next(i for i in range(start, len(t)) if t[i].text == "{") + 1
    names: list[str] = []
    while t[at].text != "}":
        kind, name, end = (token.text for token in t[at : at + 3])
        if kind not in ("uint", "int", "float", "uint32_t") or end != ";":
            raise CompileFailed(f"{shader.variant.source}: the push constant {kind} {name}")
        names.append(name)
        at += 3
    return tuple(names)


_WRITTEN = re.compile(r"layout\s*\(\s*push_constant\s*\)\s*uniform\s+\w+\s*\{(.*?)\}", re.DOTALL)
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(ifdef|ifndef|else|endif)\b[ \t]*(\w*).*$")


def written_push_words(text: str) -> tuple[str, ...]:
    """Names of a translation unit's push constants after warptile's own, its own conditions on macros done."""
    match = _WRITTEN.search(text)
    defined = set(re.findall(r"^#define (\w+)", text, re.MULTILINE))
    names: list[str] = []
    taken = [True]
    for line in (match[1] if match else "").split("\n"):
        asked = _CONDITION.match(line)
        if asked is None:
            names += re.findall(r"\buint\w*\s+(\w+)\s*;", line) if all(taken) else []
        elif asked[1] == "endif":
            taken.pop()
        elif asked[1] == "else":
            taken[-1] = not taken[-1]
        else:
            taken.append((asked[2] in defined) == (asked[1] == "ifdef"))
    return tuple(name for name in names if name not in OWN_WORDS)
