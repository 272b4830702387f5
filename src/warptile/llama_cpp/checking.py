"""`warptile check --llama-cpp`: every tuple the host gives to a matmul pipeline, held against the rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from warptile.contracts import BrokenRule, UnusableInput
from warptile.llama_cpp.checkout import Checkout
from warptile.llama_cpp.cpp.scopes import Note
from warptile.llama_cpp.host import Host, HostDevice, Pipeline
from warptile.llama_cpp.rules import broken_rules, named
from warptile.llama_cpp.shader import Shader
from warptile.llama_cpp.variants import Variants

PLAIN_SUBGROUPS = (8, 16, 32, 64, 128)
KIB = 1024


def profiles(subgroup: int | None = None) -> tuple[HostDevice, ...]:
    """Devices to ask about where none is named: one without a vendor at each subgroup size, and common cards.

    subgroup: only what runs with this size. The numbers are those vendors' common ones: 32, 48 and 64 KiB of shared
    memory, and the subgroup sizes their drivers can be asked for.
    """
    sizes = PLAIN_SUBGROUPS if subgroup is None else (subgroup,)
    square, wide = (16, 16, 16), (8, 16, 16)
    nvidia = HostDevice("NVIDIA", "nvidia", 32, (32, 32), 48 * KIB, "NVIDIA_TURING", "eNvidiaProprietary")
    amd = HostDevice("AMD RDNA2", "amd", 64, (32, 64), 64 * KIB, "AMD_RDNA2", "eMesaRadv")
    intel = HostDevice("Intel, subgroups from 8", "intel", 32, (8, 32), 64 * KIB, "OTHER", "eIntelOpenSourceMESA")
    cards = (
        (32, nvidia),
        (32, replace(nvidia, name="NVIDIA, matrices", coopmat=square)),
        (64, amd),
        (64, replace(amd, name="AMD RDNA3, matrices", architecture="AMD_RDNA3", coopmat=square, coopmat_int=square)),
        (64, replace(amd, name="AMD GCN", architecture="AMD_GCN", subgroups=(64, 64))),
        (32, replace(intel, name="Intel Xe2, matrices", subgroups=(16, 32), architecture="INTEL_XE2", coopmat=wide)),
        (8, intel),
    )
    plain = [HostDevice("any vendor", "", size, (size, size), 32 * KIB) for size in sizes]
    return (*plain, *(device for size, device in cards if subgroup in (None, size)))


@dataclass(frozen=True)
class Invalid:
    """A tuple that breaks rules. where: file and line; used_by: the shader variants it goes to."""

    where: str
    variable: str
    numbers: dict[str, int]
    denoms: tuple[int, ...]
    broken: tuple[BrokenRule, ...]
    used_by: tuple[str, ...]


@dataclass(frozen=True)
class DeviceCheck:
    """One device's tuples. pipelines, tuples: how many were held against the rules; refusal: the host's own words."""

    device: HostDevice
    pipelines: int
    tuples: int
    invalid: tuple[Invalid, ...]
    refusal: str
    notes: tuple[Note, ...]


@dataclass(frozen=True)
class HostCheck:
    """What a checkout's tuples are worth. host: its host file inside the checkout."""

    root: str
    host: str
    devices: tuple[DeviceCheck, ...]
    without_shaders: bool
    notes: tuple[Note, ...] = ()

    @property
    def exit_code(self) -> int:
        """1 where a device has an invalid tuple, else 0."""
        return int(any(d.invalid for d in self.devices))

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "checkout": self.root,
            "host": self.host,
            "shaders_read": not self.without_shaders,
            "valid": not self.exit_code,
            "devices": [
                {
                    "device": d.device.name,
                    "vendor": d.device.vendor,
                    "subgroup": d.device.subgroup,
                    "pipelines": d.pipelines,
                    "tuples": d.tuples,
                    "refused_by_host": d.refusal,
                    "invalid": [
                        {
                            "where": i.where,
                            "variable": i.variable,
                            "numbers": i.numbers,
                            "wg_denoms": list(i.denoms),
                            "broken": [
                                {"rule": b.rule, "numbers": b.numbers, "only_exceeds_device": b.well_formed}
                                for b in i.broken
                            ],
                            "used_by": list(i.used_by),
                        }
                        for i in d.invalid
                    ],
                    "not_understood": [{"line": n.line, "what": n.what} for n in d.notes],
                }
                for d in self.devices
            ],
            "not_understood": [{"line": n.line, "what": n.what} for n in self.notes],
        }


def check_checkout(checkout: Checkout, devices: Sequence[HostDevice]) -> HostCheck:
    """Hold every device's tuples against the rules. Raises UnusableInput for a version that is not understood."""
    host = Host(checkout)
    shaders = _Shaders(checkout)
    found = tuple(_device(host, device, shaders) for device in devices)
    return HostCheck(
        str(checkout.root), checkout.relative(checkout.host), found, shaders.variants is None, tuple(shaders.notes)
    )


class _Shaders:
    """Shader variants read once for all devices."""

    def __init__(self, checkout: Checkout) -> None:
        self._checkout = checkout
        self._read: dict[str, Shader] = {}
        self.variants: Variants | None = None
        self.notes: list[Note] = []
        try:
            self.variants = Variants(checkout)
        except UnusableInput:
            return
        self.variants.named("")
        self.notes = self.variants.notes

    def named(self, name: str) -> Shader | None:
        variant = None if self.variants is None else self.variants.named(name)
        if variant is None:
            return None
        return self._read.setdefault(variant.name, Shader(self._checkout, variant))


def _device(host: Host, device: HostDevice, shaders: _Shaders) -> DeviceCheck:
    choice = host.choose(device)
    grouped: dict[tuple[object, ...], list[Pipeline]] = {}
    for pipeline in choice.pipelines:
        twin = pipeline.shader.replace("_f16acc", "")
        grouped.setdefault((twin, pipeline.constants, pipeline.denoms, pipeline.line), []).append(pipeline)
    found: dict[tuple[object, ...], tuple[Pipeline, tuple[BrokenRule, ...], list[str]]] = {}
    for members in grouped.values():
        first = members[0]
        broken = tuple(broken_rules(first, device, shaders.named(first.shader)))
        if broken:
            key = (first.line, first.constants[:11], first.denoms, broken)
            found.setdefault(key, (first, broken, []))[2].extend(p.shader for p in members)
    invalid = [
        Invalid(
            where=f"{choice.path}:{pipeline.line}",
            variable=pipeline.variable,
            numbers=named(pipeline.constants[:11], shaders.named(pipeline.shader)),
            denoms=pipeline.denoms,
            broken=broken,
            used_by=tuple(dict.fromkeys(used)),
        )
        for pipeline, broken, used in found.values()
    ]
    invalid.sort(key=lambda i: i.where)
    tuples = {(p.line, p.constants[:11]) for p in choice.pipelines}
    notes = tuple(dict.fromkeys(choice.notes))
    return DeviceCheck(device, len(choice.pipelines), len(tuples), tuple(invalid), choice.refusal, notes)
