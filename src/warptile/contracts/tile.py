"""A tile: the handful of numbers that decide a kernel's speed."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any, ClassVar, Self, cast

from warptile.contracts.errors import UnusableInput


@dataclass(frozen=True)
class Tile:
    """Base of each kernel's tile: a frozen dataclass of int and str fields, all with plain field names.

    Axes: `*_n` runs along weight rows n, `*_m` along tokens m, `*_k` along the reduction.
    `kernel` is the full name ("vulkan.mul_mm"). `positional` lists the fields, in order, that a
    positional text form fills (llama.cpp's tuple for the kernels that share its parameter space).
    """

    kernel: ClassVar[str] = ""
    positional: ClassVar[tuple[str, ...]] = ()

    def text(self) -> str:
        """`KERNEL:field=value,...` with every field; `parse` inverts it."""
        return f"{self.kernel}:" + ",".join(f"{name}={value}" for name, value in self.fields().items())

    def fields(self) -> dict[str, int | str]:
        """Field names and values in declaration order."""
        return {name: getattr(self, name) for name in _names(cast(Any, type(self)))}

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `field=value,...` or positional values; a leading `KERNEL:` is dropped.

        Raises UnusableInput for an unknown field, a value of the wrong type, or a missing field.
        """
        body = text.split(":", 1)[1] if ":" in text else text
        types = {f.name: type_of(f) for f in dataclasses.fields(cls)}
        order = cls.positional or tuple(types)
        values: dict[str, Any] = {}
        for position, part in enumerate(p.strip() for p in body.split(",") if p.strip()):
            name, _, raw = part.rpartition("=")
            if not name:
                if position >= len(order):
                    raise UnusableInput(
                        f"tile for {cls.kernel}: {position + 1} values, {len(order)} fields ({', '.join(order)})"
                    )
                name = order[position]
            if name not in types:
                raise UnusableInput(f"tile for {cls.kernel}: no field {name!r}; fields are {', '.join(types)}")
            try:
                values[name] = int(raw) if types[name] == "int" else raw
            except ValueError:
                raise UnusableInput(f"tile for {cls.kernel}: {name}={raw!r} is not a whole number") from None
        try:
            return cls(**values)
        except TypeError:
            missing = [
                f.name for f in dataclasses.fields(cls) if f.name not in values and f.default is dataclasses.MISSING
            ]
            raise UnusableInput(f"tile for {cls.kernel}: missing {', '.join(missing)}") from None


@functools.cache
def _names(cls: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cls))


def type_of(field: dataclasses.Field[Any]) -> str:
    """The field's annotation as text ("int" or "str")."""
    return field.type if isinstance(field.type, str) else field.type.__name__
