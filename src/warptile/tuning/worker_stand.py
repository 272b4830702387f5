"""The stand that tunes run on: a device in its worker process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warptile import kernels
from warptile.contracts import Arm, Identity, Limits, Problem, Race, Runtime
from warptile.places import Places
from warptile.proof.jobs import prove_job
from warptile.race import Screening
from warptile.race.jobs import race_job, screen_job
from warptile.runtimes.worker import Worker
from warptile.tuning.stand import Proof


class WorkerStand:
    """`Stand` on the device a text names; the worker starts with the first step and anew after a fault."""
