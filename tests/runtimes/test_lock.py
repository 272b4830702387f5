"""Two tuners on one card would time each other: the second is told who holds it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from warptile.contracts import UnusableInput
from warptile.places import Places
from warptile.runtimes.entry import DeviceEntry
from warptile.runtimes.lock import DeviceLock, lock_name

CARD = DeviceEntry("vulkan:1", "Card X (RADV)", "radv", "discrete", "vulkan")

_HOLD = """
import sys
from warptile.places import Places
from warptile.runtimes.entry import DeviceEntry
from warptile.runtimes.lock import DeviceLock
from pathlib import Path
places = Places(Path(sys.argv[1]) / "c", Path(sys.argv[1]) / "s", Path(sys.argv[1]) / "locks")
DeviceLock(DeviceEntry("vulkan:1", "Card X (RADV)", "radv", "discrete", "vulkan"), places).acquire()
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_process_is_refused_with_the_first_ones_id_until_it_dies(tmp_path: Path) -> None:
    """With folders of its own for all else: two journals do not make two cards of one."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", _HOLD, str(tmp_path)]
    lock = DeviceLock(CARD, Places(tmp_path / "other", tmp_path / "other", tmp_path / "locks"))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(UnusableInput, match=rf"vulkan:1 \(Card X \(RADV\)\) is in use by process {holder.pid}$"):
            lock.acquire()
        holder.kill()
        holder.wait()
        with lock:
            assert lock.path.read_text().split() == [str(os.getpid())]


def test_a_released_lock_can_be_taken_again(places: Places) -> None:
    first, second = DeviceLock(CARD, places), DeviceLock(CARD, places)
    with first, pytest.raises(UnusableInput, match=str(os.getpid())):
        second.acquire()
    with second:
        pass


def test_all_software_devices_of_a_host_share_one_lock_and_cards_do_not() -> None:
    software = [DeviceEntry(f"vulkan:{i}", f"llvmpipe {i}", "", "software", "vulkan") for i in range(2)]
    assert {lock_name(entry) for entry in software} == {"software"}
    other = DeviceEntry("vulkan:2", CARD.name, "radv", "discrete", "vulkan")
    assert lock_name(CARD) == "card-x-radv-1" != lock_name(other)


def test_a_folder_that_cannot_hold_the_lock_is_one_line(places: Places, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnusableInput, match="cannot be written"):
        DeviceLock(CARD, Places(places.cache, places.state, tmp_path / "file" / "locks")).acquire()


def test_every_user_may_take_the_lock_and_no_link_leads_elsewhere(places: Places, tmp_path: Path) -> None:
    folder = tmp_path / "locks"
    with DeviceLock(CARD, Places(places.cache, places.state, folder)) as lock:
        assert folder.stat().st_mode & 0o7777 == 0o1777
        assert lock.path.stat().st_mode & 0o777 == 0o666
    lock.path.unlink()
    lock.path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnusableInput, match="cannot be written"):
        lock.acquire()
    assert not (tmp_path / "elsewhere").exists()


def test_a_full_disk_is_one_line_and_leaves_the_lock_free(
    tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = DeviceLock(CARD, Places.under(os.fspath(tmp_path)))

    def full(*arguments: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(UnusableInput, match="cannot be written: No space left"):
            lock.acquire()
    with DeviceLock(CARD, Places.under(os.fspath(tmp_path))):
        pass
