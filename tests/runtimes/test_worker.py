"""A hang or a crash on the device costs one candidate, never the run; nothing is left behind by a killed parent."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import worker_jobs as jobs

from warptile.contracts import (
    DeviceLost,
    DoesNotFit,
    MissingExtra,
    OutOfMemory,
    Timeout,
    UnusableInput,
    WarptileError,
)
from warptile.places import Places
from warptile.runtimes.worker import Worker


@pytest.fixture(scope="module")
def worker(software_device: str, places: Places) -> Iterator[Worker]:
    with Worker(software_device, places) as worker:
        yield worker


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone_within(pid: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not alive(pid):
            return True
        time.sleep(0.05)
    return False


def test_a_job_runs_in_the_child_and_gives_its_value_back(worker: Worker) -> None:
    assert worker.run(jobs.add, 2, 3) == 5
    assert worker.run(jobs.pid) == worker.pid != os.getpid()


def test_identity_and_limits_are_those_of_the_device(worker: Worker) -> None:
    assert worker.identity().runtime == "vulkan"
    assert worker.limits().name == worker.identity().device
    assert worker.limits().live


def test_uploads_survive_from_job_to_job(worker: Worker) -> None:
    worker.run(jobs.keep, [3, 1, 4])
    assert worker.run(jobs.kept, 3) == [3, 1, 4]


def test_progress_arrives_in_order_before_the_value(worker: Worker) -> None:
    seen: list[int] = []
    assert worker.run(jobs.count, 5, on_progress=seen.append) == 5
    assert seen == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("kind", "error", "line"),
    [
        ("fit", DoesNotFit, "invalid tile: m <= 4 (5 > 4)"),
        ("extra", MissingExtra, "cuda:0 needs the optional extra: pip install 'warptile[torch]'"),
        ("input", UnusableInput, "no such thing"),
        (
            "memory",
            OutOfMemory,
            "the host's memory is too small: Unable to allocate 1.00 EiB for an array with shape (1152921504606846976,)"
            " and data type uint8",
        ),
    ],
)
def test_an_error_of_a_job_comes_back_as_itself(
    worker: Worker, kind: str, error: type[WarptileError], line: str
) -> None:
    before = worker.run(jobs.pid)
    with pytest.raises(WarptileError) as caught:
        worker.run(jobs.refuse, kind)
    assert type(caught.value) is error
    assert str(caught.value) == line
    assert worker.run(jobs.pid) == before


def test_a_bug_in_a_job_keeps_its_class_and_shows_where(worker: Worker) -> None:
    with pytest.raises(KeyError) as caught:
        worker.run(jobs.refuse, "bug")
    assert any("worker_jobs.py" in note for note in caught.value.__notes__)


def test_a_value_that_cannot_travel_is_an_error_not_a_hang(worker: Worker) -> None:
    with pytest.raises((AttributeError, RuntimeError, pickle.PicklingError)):
        worker.run(jobs.unpicklable)
    assert worker.run(jobs.add, 1, 1) == 2


def test_a_function_the_child_could_not_import_is_refused(worker: Worker) -> None:
    with pytest.raises(ValueError, match="importable"):
        worker.run(lambda runtime: 1)


def test_past_its_deadline_a_job_is_killed_and_the_next_has_a_fresh_worker(worker: Worker) -> None:
    first = worker.run(jobs.pid)
    start = time.monotonic()
    with pytest.raises(Timeout, match=r"worker_jobs\.sleep .* longer than 0\.3 s"):
        worker.run(jobs.sleep, 60.0, deadline=0.3)
    assert time.monotonic() - start < 10
    assert not alive(first)
    assert worker.run(jobs.add, 1, 2) == 3
    assert worker.run(jobs.pid) != first


def test_a_worker_that_dies_in_a_job_is_device_lost_and_comes_back(worker: Worker) -> None:
    with pytest.raises(DeviceLost, match="SIGSEGV"):
        worker.run(jobs.end, int(signal.SIGSEGV))
    assert worker.run(jobs.add, 1, 2) == 3


def test_a_lost_device_costs_its_worker_too(worker: Worker) -> None:
    first = worker.run(jobs.pid)
    with pytest.raises(DeviceLost, match="the driver lost the device"):
        worker.run(jobs.refuse, "lost")
    assert worker.run(jobs.pid) != first


def test_a_worker_that_died_between_jobs_is_replaced(worker: Worker) -> None:
    pid = worker.run(jobs.pid)
    os.kill(pid, signal.SIGKILL)
    assert gone_within(pid, 10)
    assert worker.run(jobs.add, 4, 5) == 9


def test_ctrl_c_does_not_reach_the_worker(worker: Worker) -> None:
    pid = worker.run(jobs.pid)
    assert worker.run(jobs.parent_session) != os.getsid(0)
    worker.run(jobs.end, int(jobs.INTERRUPT))
    assert worker.run(jobs.pid) == pid


def test_a_failing_progress_callback_does_not_mix_up_answers(worker: Worker) -> None:
    def fail(value: object) -> None:
        raise LookupError("display")

    with pytest.raises(LookupError):
        worker.run(jobs.count, 3, on_progress=fail)
    assert worker.run(jobs.add, 20, 1) == 21


def test_the_lock_is_held_while_the_worker_lives(worker: Worker, software_device: str, places: Places) -> None:
    pid = worker.run(jobs.pid)
    with (
        Worker(software_device, places) as second,
        pytest.raises(UnusableInput, match=f"in use by process {pid}$"),
    ):
        second.run(jobs.add, 1, 1)


def test_an_unknown_device_is_one_line(places: Places) -> None:
    with Worker("vulkan:no such card", places) as worker, pytest.raises(UnusableInput, match="no device"):
        worker.limits()


_PARENT = """
import sys
from support import worker_jobs as jobs
from pathlib import Path
from warptile.places import Places
from warptile.runtimes.worker import Worker
folder = Path(sys.argv[2])
worker = Worker(sys.argv[1], Places(folder / "cache", folder / "state", folder / "locks"))
seconds = 120.0 if sys.argv[3] == "busy" else 0.0
worker.run(jobs.pid_then_sleep, seconds, on_progress=lambda pid: print(pid, flush=True))
sys.stdin.read()
"""


@pytest.mark.parametrize("state", ["idle", "busy"])
def test_no_worker_survives_a_killed_parent(software_device: str, tmp_path: Path, state: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", _PARENT, software_device, str(tmp_path), state]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert alive(pid)
        parent.kill()
        parent.wait()
        assert gone_within(pid, 15)
