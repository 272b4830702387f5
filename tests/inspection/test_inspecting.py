"""`warptile inspect`: real compilers' output read back, in the containers that libraries ship it in."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

from warptile.cli import run
from warptile.contracts import UnusableInput
from warptile.inspection import inspect
from warptile.inspection.amd import listing
from warptile.inspection.report import FunctionCode, demangled
from warptile.inspection.spirv import Binding, reflect
from warptile.places import Places
from warptile.runtimes.triton.assembly import k_loops
from warptile.runtimes.vulkan.spirv import Glslang

# One tile each for an RDNA4 and a Hopper card, with what the compile report says of it.
COMPILE = """
import json, sys
from pathlib import Path
from warptile import devices, kernels, offline
from warptile.contracts import Problem
from warptile.kernels.triton.matrix import architecture
from warptile.kernels.triton.program import Program
from warptile.runtimes.triton.compiling import gpu_target, machine_code, program_key
out, folder = {}, Path(sys.argv[1])
for card, kind, suffix in (("rx-9060-xt", "hsaco", "co"), ("h200", "cubin", "cubin")):
    problem, limits = Problem("Q8_0", 1024, 1024, 128, "fp16", "fp16"), devices.compile_only(card)
    kernel = kernels.by_name("gemm")
    tile = kernel.stock(problem, limits)
    report = offline.compile_tiles(problem, limits, [(kernel, tile, "stock")], folder / "triton")
    program = Program.parse(kernel.source(tile, problem, limits))
    target = gpu_target(limits.runtime, architecture(limits).name)
    key = program_key(program.builds, program.enqueue, target, {})
    compiled = machine_code(program.builds[0], target, key, folder / "triton").kernel
    (folder / f"kernel.{suffix}").write_bytes(compiled.asm[kind])
    out[suffix] = report.to_json()["tiles"][0]["builds"][0]
print(json.dumps(out))
"""

SHADER = """#version 450
layout(local_size_x = 64) in;
layout(constant_id = 3) const uint K = 4;
layout(set = 0, binding = 0) buffer A { float a[]; };
layout(set = 1, binding = 2) uniform B { vec4 b[16]; };
layout(push_constant) uniform P { uint n; } p;
shared float s[64 * K];
void main() { uint i = gl_GlobalInvocationID.x; s[gl_LocalInvocationIndex] = b[i & 15].x; barrier();
  if (i < p.n) a[i] = s[63 - gl_LocalInvocationIndex]; }
"""

# As llvm-objdump prints it: a loop of one matrix instruction that reads scratch, and a reload after it.
LISTING = """
0000000000001900 <kernel>:
\ts_mov_b32 s0, 0                                            // 000000001900: BE800080
\tscratch_load_b32 v1, off, off                              // 000000001904: ED05007C 00000001
\tv_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]  // 00000000190C: CC404000 1C022108
\ts_cbranch_scc1 65531                                       // 000000001914: BFA2FFFB <kernel+0x4>
\tscratch_load_b32 v2, off, off offset:4                     // 000000001918: ED05007C 00000002
\ts_endpgm                                                   // 000000001920: BFB00000
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    pytest.importorskip("triton")
    folder = tmp_path_factory.mktemp("compiled")
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    command = [sys.executable, "-W", "ignore", "-c", COMPILE, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def bundle(images: dict[str, bytes]) -> bytes:
    """Clang's offload bundle of these code objects, with the empty host entry that it puts first."""
    entries = [("host-x86_64-unknown-linux-gnu-", b""), *images.items()]
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries))
    offset = len(head) + sum(24 + len(name) for name, _ in entries)
    body = b""
    for name, image in entries:
        head += struct.pack("<QQQ", offset + len(body), len(image), len(name)) + name.encode()
        body += image
    return head + body


def zstd(data: bytes) -> bytes:
    return pytest.importorskip("zstandard").ZstdCompressor().compress(data)  # type: ignore[no-any-return]


def test_a_code_object_says_what_the_compiler_said(compiled: tuple[Path, dict[str, Any]]) -> None:
    folder, built = compiled
    (function,) = inspect(folder / "kernel.co").functions
    said = built["co"]["code"]
    assert function.architecture == "gfx1200"
    assert (function.registers, function.spilled_registers) == (said["registers"], said["spilled_registers"])
    assert function.spill_bytes == said["spill_bytes"]
    assert function.code_bytes is not None
    assert function.code_bytes > 1000


def test_a_cubin_says_what_the_compiler_said(compiled: tuple[Path, dict[str, Any]]) -> None:
    folder, built = compiled
    (function,) = inspect(folder / "kernel.cubin").functions
    said = built["cubin"]["code"]
    assert function.architecture == "sm_90a"
    assert (function.registers, function.matrix, function.loops, function.loop_accesses) == (
        said["registers"], said["matrix"], said["loops"], said["loop_accesses"],
    )  # fmt: skip
    assert function.matrix
    assert function.spills == "none"


@pytest.mark.parametrize("version", [0, 1, 2, 3])
@pytest.mark.parametrize("method", [0, 1])
def test_a_bundle_of_every_form_gives_its_code_objects(
    compiled: tuple[Path, dict[str, Any]], tmp_path: Path, version: int, method: int
) -> None:
    folder, _ = compiled
    image = (folder / "kernel.co").read_bytes()
    plain = bundle({"hipv4-amdgcn-amd-amdhsa--gfx1200": image})
    packed = zstd(plain) if method else zlib.compress(plain)
    heads = {
        1: (20, struct.pack("<IQ", len(plain), 0)),
        2: (24, struct.pack("<IIQ", 24 + len(packed), len(plain), 0)),
        3: (32, struct.pack("<QQQ", 32 + len(packed), len(plain), 0)),
    }
    data = plain if version == 0 else b"CCOB" + struct.pack("<HH", version, method) + heads[version][1] + packed
    path = tmp_path / "library.hipfb"
    path.write_bytes(data if version == 1 else data + bytes(64) + data)
    found = inspect(path)
    assert [f.architecture for f in found.functions] == ["gfx1200"] * (1 if version == 1 else 2)
    assert found.functions[0].registers == inspect(folder / "kernel.co").functions[0].registers


def test_a_spill_inside_the_loop_is_told_from_one_outside() -> None:
    ((name, code),) = listing(iter(LISTING.splitlines(keepends=True)))
    assert name == "kernel"
    assert k_loops(code) == [(0x1904, 0x1914)]
    assert FunctionCode("k", "gfx1200", spill_bytes=8, loop_accesses=1).spills == "in a loop"
    assert FunctionCode("k", "gfx1200", spill_bytes=8, loop_accesses=0).spills == "outside loops"
    assert FunctionCode("k", "gfx1200", spill_bytes=8).spills == "somewhere"
    assert FunctionCode("k", "gfx1200", spill_bytes=0).spills == "none"
    assert FunctionCode("k", "gfx1200").spills == "not stated"


@pytest.fixture(scope="module")
def shader(places: Places, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shader") / "shader.spv"
    path.write_bytes(Glslang(places.ready().cache, (1, 3)).compile(SHADER))
    return path


def test_a_module_is_laid_out_as_it_declares(shader: Path) -> None:
    found = reflect(shader.read_bytes())
    assert found.bindings == (Binding(0, 0, True), Binding(1, 2, False))
    assert (found.entry, found.push_constants, found.constants) == ("main", True, (3,))


def test_spirv_goes_through_the_driver_which_says_so_where_it_reports_nothing(
    shader: Path, software_device: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = inspect(shader, software_device, {3: 2})
    assert "llvmpipe" in found.compiler
    assert found.functions or "does not report" in found.notes[0]
    assert run(["inspect", str(shader), "--device", software_device, "--constant", "9=1"]) == 2
    assert "no specialization constant 9 (has 3)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"plain text", "neither SPIR-V"),
        (b"\x7fELF" + bytes(80), "ELF"),
        (b"\x03\x02\x23\x07" + bytes(40), "broken instruction"),
        (b"__CLANG_OFFLOAD_BUNDLE__" + b"\xff" * 40, "broken offload bundle"),
        (b"CCOB" + struct.pack("<HHQQQ", 3, 1, 1 << 40, 9, 0), "cannot be"),
        (b"CCOB" + struct.pack("<HHIIQ", 2, 1, 28, 9, 0) + b"none", "broken offload bundle"),
    ],
)
def test_a_broken_file_is_named_in_one_line(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "broken"
    path.write_bytes(content)
    with pytest.raises(UnusableInput, match=says) as caught:
        inspect(path)
    assert str(path) in str(caught.value)


def test_what_holds_no_gpu_code_is_said() -> None:
    with pytest.raises(UnusableInput, match="without GPU code"):
        inspect(Path(sys.executable).resolve())
    assert run(["inspect", "/no/such/file"]) == 2
    assert run(["inspect", sys.executable, "--constant", "three"]) == 2


def test_names_read_as_written_in_the_source() -> None:
    assert demangled("plain") == "plain"
    assert demangled("_ZN4ggml4gemmEi") in ("ggml::gemm(int)", "_ZN4ggml4gemmEi")
