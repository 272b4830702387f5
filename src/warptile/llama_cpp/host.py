"""Which tuples the host code gives to which pipeline, on a given device: its own code, run by the reader."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field

from warptile.contracts import Limits, UnusableInput
from warptile.gguf import TENSOR_TYPES
from warptile.gguf.escape import shown
from warptile.llama_cpp.checkout import Checkout, Unit
from warptile.llama_cpp.cpp.evaluate import Evaluator, Native
from warptile.llama_cpp.cpp.parse import Parser
from warptile.llama_cpp.cpp.scopes import Left, Note, Scope, Thrown
from warptile.llama_cpp.cpp.syntax import For, Node, names_in, walk
from warptile.llama_cpp.cpp.values import Mapping, Record, Sequence, Symbol, Unknown, Value

ENTRY = "ggml_vk_load_shaders"
CREATE = "ggml_vk_create_pipeline"
SHARED_CHECK = "ggml_vk_matmul_shmem_support"
VENDOR_IDS = {
    "amd": 0x1002,
    "apple": 0x106B,
    "intel": 0x8086,
    "nvidia": 0x10DE,
    "qualcomm": 0x5143,
    "arm": 0x13B5,
    "mesa": 0x10005,
}
MOST_TYPES = 64
_MATTERS = re.compile(r".*(?:warptile|wg_denoms|mul_mat_[lms]\b)|tc_\w+$")
_SIZE = re.compile(r"_([lms])$|_(\d)$")


@dataclass(frozen=True)
class HostDevice:
    """What the host code asks of a device. subgroups: (least, most) it can be asked for, equal where it has one.

    architecture, driver: names as the host code writes them. coopmat: fp16 cooperative matrix (m, n, k), if any.
    """

    name: str
    vendor: str
    subgroup: int
    subgroups: tuple[int, int]
    shared_bytes: int
    architecture: str = "OTHER"
    driver: str = "eOther"
    fp16: bool = True
    int_dot: bool = True
    coopmat: tuple[int, int, int] | None = None
    coopmat_int: tuple[int, int, int] | None = None
    coopmat2: bool = False
    max_workgroup: int = 1024
    live: bool = False

    @staticmethod
    def of(limits: Limits) -> HostDevice:
        """The host's view of a card. Integer dot products count where they are accelerated, as the host has it."""
        sizes = limits.subgroup_sizes or (limits.subgroup,)
        half = [c for c in limits.cooperative_matrices if c.a_type == "fp16"]
        whole = [c for c in limits.cooperative_matrices if c.a_type in ("int8", "s8")]
        return HostDevice(
            name=limits.name,
            vendor=limits.vendor,
            subgroup=limits.subgroup,
            subgroups=(min(sizes), max(sizes)),
            shared_bytes=limits.shared_bytes,
            architecture=_architecture(limits),
            driver="eOther",
            fp16=limits.has("fp16"),
            int_dot=limits.has("int_dot_accelerated"),
            coopmat=(half[0].m, half[0].n, half[0].k) if half else None,
            coopmat_int=(whole[0].m, whole[0].n, whole[0].k) if whole else None,
            max_workgroup=limits.max_workgroup,
            live=limits.live,
        )

    def at_subgroup(self, subgroup: int) -> HostDevice:
        """The device with one subgroup size."""
        return dataclasses.replace(self, subgroup=subgroup, subgroups=(subgroup, subgroup))


def _architecture(limits: Limits) -> str:
    """The host's name of an architecture, by the properties it tells them apart with."""
    sizes = limits.subgroup_sizes or (limits.subgroup,)
    if limits.vendor == "amd":
        if max(sizes) == 64 and min(sizes) == 64:
            return "AMD_GCN"
        if limits.has("coopmat"):
            return "AMD_RDNA3"
        return "AMD_RDNA2" if limits.has("int_dot_accelerated") else "AMD_RDNA1"
    if limits.vendor == "intel":
        return "INTEL_XE2" if min(sizes) == 16 else "OTHER"
    if limits.vendor == "nvidia":
        return "NVIDIA_TURING" if limits.has("coopmat") else "NVIDIA_PRE_TURING"
    return "QUALCOMM_ADRENO" if limits.vendor == "qualcomm" else "OTHER"


@dataclass(frozen=True)
class Pipeline:
    """A matmul pipeline the host builds.

    shader: of the compiled variants, as `Variant.name`; constants: specialization constants from 0 on; line: of the
    tuple's braces; variable: that holds it, "" where it is written in place; denoms: what the dispatch divides m and n
    by; align: of k, 1 for the variant that takes any; subgroup: required, 0 for the device's own.
    """

    name: str
    shader: str
    constants: tuple[int, ...]
    denoms: tuple[int, ...]
    line: int
    variable: str
    align: int = 1
    subgroup: int = 0

    @property
    def size(self) -> str:
        """ "l", "m" or "s" where the variable's name says so, else ""."""
        match = re.match(r"([lms])_|.*_([lms])$", self.variable)
        return (match[1] or match[2]) if match else ""


@dataclass
class HostChoice:
    """Everything the host code chooses on one device.

    notes: what was not understood and matters. refusal: the host's own words where it refuses the device.
    variables: tuples and divisors by name, as they are when the pipelines are made.
    """

    device: HostDevice
    path: str
    pipelines: list[Pipeline] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    refusal: str = ""
    variables: dict[str, Sequence] = field(default_factory=dict)


class Host:
    """The host code of a checkout; text: what stands for its file's own."""

    def __init__(self, checkout: Checkout, text: str | None = None) -> None:
        self.checkout = checkout
        include = (checkout.root / "ggml/include/ggml.h", checkout.root / "include/ggml.h", checkout.root / "ggml.h")
        self.unit = Unit(checkout.host, (*sorted(checkout.host.parent.glob("ggml-vulkan*.h")), *include), text)
        tokens = self.unit.function_tokens(ENTRY)
        if not tokens:
            raise UnusableInput(f"{shown(checkout.host)}: defines no {ENTRY}: this version is not understood")
        parser = Parser(tokens)
        self._parameters = parser.parameters()
        parser.take("{")
        self._last = last = max((token.line for token in tokens if "warptile" in token.text), default=0)
        self._statements: list[Node] = []
        while not parser.is_at("}") and parser.need().line <= last:
            self._statements.append(parser.statement())
        self._sizes = _sizes_loops(self.unit)

    @property
    def lines(self) -> tuple[int, int]:
        """First and last line of the statements that choose pipelines."""
        return self._statements[0].line, self._last

    def shared_check_line(self) -> int | None:
        """The line of the loop that turns pipelines off whose tuples do not fit; None where there is none."""
        loops = [n for s in self._statements for n in walk(s) if isinstance(n, For) and SHARED_CHECK in names_in(n)]
        return min((loop.line for loop in loops), default=None)

    def choose(self, device: HostDevice) -> HostChoice:
        """The pipelines of a device."""
        choice = HostChoice(device, self.checkout.relative(self.checkout.host))
        unit = self.unit
        made: list[tuple[list[Value], int]] = []

        def create(arguments: list[Value], line: int) -> Value:
            made.append((arguments, line))
            return 0

        def matters(names: set[str]) -> bool:
            return any(_MATTERS.match(name) for name in names)

        natives: dict[str, Native] = {CREATE: create, "ggml_type_size": _type_size}
        evaluator = Evaluator(natives, unit.resolve, unit.struct_of, matters)
        record = _device_record(device, unit)
        for name, on in _sizes_in_use(unit, self._sizes, evaluator, record).items():
            record.members[name] = on
        holder = Record({"device": record}) if "context" in self._parameters[0].type else record
        scope = Scope(None, {p.name: holder if i == 0 else 0 for i, p in enumerate(self._parameters)})
        try:
            for statement in self._statements:
                evaluator.run(statement, scope)
        except Thrown as thrown:
            choice.refusal = f"{thrown} (line {thrown.line})"
        except Left:
            choice.notes.append(Note(self._statements[0].line, f"{ENTRY} returns before its pipelines are built"))
        choice.variables = {
            name: value
            for name, value in scope.names.items()
            if isinstance(value, Sequence) and re.search("warptile|wg_denoms", name) and value.items
        }
        choice.notes += evaluator.notes
        for arguments, line in made:
            _add(unit, choice, arguments, line)
        return choice


def _add(unit: Unit, choice: HostChoice, arguments: list[Value], line: int) -> None:
    """One call of the host's create function as a `Pipeline`; those of other operations are left out."""
    if len(arguments) < 11:
        choice.notes.append(Note(line, f"{CREATE} with {len(arguments)} arguments"))
        return
    _, _, name, _, data, _, _, _, denoms, spec, align = arguments[:11]
    shader = data.name.removesuffix("_data") if isinstance(data, Symbol) else ""
    if not shader.startswith("matmul") and not str(name).startswith("matmul"):
        return
    numbers = spec.items if isinstance(spec, Sequence) else []
    divisors = denoms.items if isinstance(denoms, Sequence) else []
    plain = [int(n) if isinstance(n, int) else 0 for n in numbers]
    unclear = [n for n in (*numbers[:11], *divisors) if not isinstance(n, int)]
    if unclear or not plain or not divisors or not shader:
        why = next((n.why for n in unclear if isinstance(n, Unknown)), "its tuple, divisors or shader are not known")
        choice.notes.append(Note(line, f"the pipeline {shader or name}: {why}"))
        return
    where = spec.line
    choice.pipelines.append(
        Pipeline(
            name=name if isinstance(name, str) else shader,
            shader=shader,
            constants=tuple(plain),
            denoms=tuple(divisors),
            line=where,
            variable=_variable(unit, where),
            align=align if isinstance(align, int) else 0,
            subgroup=arguments[13] if len(arguments) > 13 and isinstance(arguments[13], int) else 0,
        )
    )


def _type_size(arguments: list[Value], line: int) -> Value:
    """Bytes of a block of a ggml type."""
    found = TENSOR_TYPES.get(arguments[0]) if arguments and isinstance(arguments[0], int) else None
    return Unknown("ggml_type_size", line) if found is None else found.block_bytes


def _variable(unit: Unit, line: int) -> str:
    """The first variable that the braces on a line are assigned to; "" where they are written in place."""
    match = re.search(r"(\w*warptile\w*)\s*=[^=]*\{", unit.line(line))
    return match[1] if match else ""


def _device_record(device: HostDevice, unit: Unit) -> Record:
    """The host's `device`, with what this reader can say of it; any other member is unknown."""
    least, most = device.subgroups
    m, n, k = device.coopmat or (0, 0, 0)
    im, in_, ik = device.coopmat_int or (0, 0, 0)
    matrices = device.coopmat is not None
    controlled = least != most
    limits = Record({"maxComputeSharedMemorySize": device.shared_bytes})
    properties = {"limits": limits, "vendorID": VENDOR_IDS.get(device.vendor, 0), "deviceName": device.name}
    members: dict[str, Value] = {
        "vendor_id": VENDOR_IDS.get(device.vendor, 0),
        "architecture": Symbol(device.architecture),
        "driver_id": Symbol(device.driver),
        "subgroup_size": device.subgroup,
        "subgroup_min_size": least,
        "subgroup_max_size": most,
        "subgroup_size_control": controlled,
        "subgroup_require_full_support": controlled,
        "subgroup_ballot": True,
        "properties": Record(properties),
        "fp16": device.fp16,
        "integer_dot_product": device.int_dot,
        "coopmat_support": matrices,
        "coopmat_acc_f16_support": matrices,
        "coopmat_acc_f32_support": matrices,
        "coopmat_bf16_support": False,
        "coopmat_int_support": device.coopmat_int is not None,
        "coopmat_m": m, "coopmat_n": n, "coopmat_k": k,
        "coopmat_int_m": im, "coopmat_int_n": in_, "coopmat_int_k": ik,
        "coopmat2": device.coopmat2,
        "coopmat2_decode_vector": False, "coopmat2_bf16_support": False, "coopmat1_fa_support": False,
        "dot2_f16": False, "ocp_fp4": False, "uma": False, "need_compiles": False,
        "pipeline_matmul": Mapping(made=lambda: Sequence([])),
    }  # fmt: skip
    return Record(members, (), lambda name, line: Unknown(f"device->{name}", line))


def _sizes_in_use(unit: Unit, loops: list[Node], evaluator: Evaluator, device: Record) -> dict[str, Value]:
    """The small, medium and large pipelines a vendor uses (`mul_mat_l` and its like), by the host's own loop."""
    count = unit.resolve("GGML_TYPE_COUNT")
    types = count if isinstance(count, int) else MOST_TYPES
    named = r"\bmul_mat_(?:id_)?[lms](?:_int)?\b"
    names = {name for _, line in unit.lines("mul_mat_") for name in re.findall(named, line)}
    device.members.update({name: Sequence([True] * types) for name in names})
    for loop in loops:
        evaluator.run(loop, Scope(None, {"device": device}))
    return {name: device.members[name] for name in names}


def _sizes_loops(unit: Unit) -> list[Node]:
    """The outermost loops and switches of the device's set-up that name `mul_mat_l`."""
    for name in ("ggml_vk_get_device", "ggml_vk_init", "ggml_backend_vk_init"):
        tokens = unit.function_tokens(name) or []
        found: list[Node] = []
        index = 0
        while index < len(tokens):
            if tokens[index].text in ("for", "switch"):
                parser = Parser(tokens[index:])
                statement = parser.statement()
                if "mul_mat_l" in names_in(statement):
                    found.append(statement)
                    index += parser.position
                    continue
            index += 1
        if found:
            return found
    return []
