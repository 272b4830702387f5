"""What flows between the rooms: frozen dataclasses and the two protocols (`Kernel`, `Runtime`).

Every room imports from here and from the rooms upstream of it, never from a room downstream.
"""

from warptile.contracts.errors import (
    CandidateRejected,
    CompileFailed,
    DeviceLost,
    DoesNotFit,
    InvalidTile,
    MissingExtra,
    OutOfMemory,
    Timeout,
    Untimed,
    UnusableInput,
    WarptileError,
    Wrong,
)
from warptile.contracts.evidence import Arithmetic, Arm, BrokenRule, Decision, FirstWrong, Race, Verdict
from warptile.contracts.instruments import FAULT_KINDS, Fault, InstrumentedRuntime, Observation
from warptile.contracts.kernel import GroupedKernel, Kernel, launches_of
from warptile.contracts.launch import Chosen, DeviceWeights, Launch, Scratch, Source, WeightSlice
from warptile.contracts.limits import Limits
from warptile.contracts.price import Price, Resources
from warptile.contracts.problem import Problem, Workload, WorkloadRow
from warptile.contracts.runtime import Binary, Buffer, Ceilings, Identity, Instrument, Runtime
from warptile.contracts.state import DeviceState
from warptile.contracts.tile import Tile

__all__ = [
    "Arithmetic",
    "Arm",
    "Binary",
    "BrokenRule",
    "Buffer",
    "CandidateRejected",
    "Ceilings",
    "Chosen",
    "CompileFailed",
    "Decision",
    "DeviceLost",
    "DeviceState",
    "DeviceWeights",
    "DoesNotFit",
    "FAULT_KINDS",
    "Fault",
    "FirstWrong",
    "GroupedKernel",
    "Identity",
    "Instrument",
    "InstrumentedRuntime",
    "InvalidTile",
    "Kernel",
    "Launch",
    "Limits",
    "MissingExtra",
    "Observation",
    "OutOfMemory",
    "Price",
    "Problem",
    "Race",
    "Resources",
    "Runtime",
    "Scratch",
    "Source",
    "Tile",
    "Timeout",
    "Untimed",
    "UnusableInput",
    "Verdict",
    "WarptileError",
    "WeightSlice",
    "Workload",
    "WorkloadRow",
    "Wrong",
    "launches_of",
]
