"""Disks that are full or read-only, under the table, the quarantine and the home: said, and over when they are."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from lading import failpoints
from lading.errors import LadingError
from lading.pipeline.scratch import scratch_fault
from lading.tables.registry import kind_of
from tests.faults.rig import Service
from tests.tables.optional import skip_without

ROWS = 50
FULL = "No space left on device"


class Disk:
    """A small disk of its own, which may be full or read-only for a while."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self) -> None:
        for size in (1 << 16, 1 << 12, 1):
            with (self.path / "filler").open("ab", buffering=0) as file:
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    continue

    def free(self) -> None:
        (self.path / "filler").unlink()

    def lock(self) -> None:
        self._remount("ro")

    def unlock(self) -> None:
        self._remount("rw")

    def _remount(self, how: str) -> None:
        options = f"remount,{how},size=24m,mode=0700"
        subprocess.run(["mount", "-o", options, str(self.path)], check=True, capture_output=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    place = tmp_path / "disk"
    place.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m,mode=0700", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("FULL AND READ-ONLY DISKS ARE NOT TESTED: no tmpfs can be mounted here; run as root")
    yield Disk(place)
    subprocess.run(["umount", "-l", str(place)], check=True)


class FailingDisk:
    """A disk that its kernel makes read-only at a fault, under files that are open, as real ones are."""

    def __init__(self, image: Path, path: Path) -> None:
        self.path, self._image = path, image

    def mount(self) -> bool:
        options = ["-o", "loop,errors=remount-ro"]
        done = subprocess.run(["mount", *options, str(self._image), str(self.path)], capture_output=True, check=False)
        return done.returncode == 0

    def fail(self) -> None:
        device = next(line.split()[0] for line in _mounts() if line.split()[1] == str(self.path))
        Path(f"/sys/fs/ext4/{device.rpartition('/')[2]}/trigger_fs_error").write_text("by a test")

    def repair(self) -> None:
        """What a person does, once nobody has a file open there."""
        subprocess.run(["umount", str(self.path)], check=True)
        subprocess.run(["e2fsck", "-y", str(self._image)], check=False, capture_output=True)
        assert self.mount()


def _mounts() -> list[str]:
    return Path("/proc/mounts").read_text().splitlines()


@pytest.fixture
def failing_disk(tmp_path: Path) -> Iterator[FailingDisk]:
    image, place = tmp_path / "image", tmp_path / "failing"
    place.mkdir()
    image.write_bytes(b"")
    os.truncate(image, 24 << 20)
    found = FailingDisk(image, place)
    maker = shutil.which("mkfs.ext4")
    if maker is None or os.geteuid() != 0 or subprocess.run([maker, "-q", str(image)], check=False).returncode != 0:
        pytest.skip("A DISK THAT FAILS UNDER A SERVICE IS NOT TESTED: no ext4 can be made here; run as root")
    if not found.mount():
        pytest.skip("A DISK THAT FAILS UNDER A SERVICE IS NOT TESTED: no image can be mounted here")
    yield found
    subprocess.run(["umount", "-l", str(place)], check=True)


class Shop:
    """A job from files into a table; one of home and lake is on the small disk."""

    def __init__(self, path: Path, home: Path, lake: Path, form: str, store_url: str = "") -> None:
        skip_without(kind_of(form))
        self.inbox, self.files = path / "in", 0
        self.inbox.mkdir()
        self.service = Service(home, store_url=store_url)
        self.put()
        self.service.sql(
            f"CREATE TABLE t (id BIGINT, city STRING) USING {form} LOCATION '{lake}';"
            'CREATE JOB j PROPERTIES("max_interval"="1", "file.settle_seconds"="0") ON STREAMING DO INSERT INTO t '
            f'SELECT id, city FROM FILE("uri"="{self.inbox}/*.csv", "format"="csv_with_names", '
            '"column_separator"=",")'
        )

    def put(self) -> None:
        first = self.files * ROWS
        rows = "".join(f"{number},essen\n" for number in range(first, first + ROWS))
        (self.inbox / f"{self.files:03d}.csv").write_text(f"id,city\n{rows}")
        self.files += 1

    def strike(self, begin: Callable[[], None], end: Callable[[], None], *words: str) -> None:
        """A fault that lasts for some turns: SHOW says it in these words, and it is over when it is."""
        self.service.run_until(self.service.is_loaded(self.files * ROWS))
        begin()
        self.put()
        self.service.forget()
        for _ in range(6):
            self.service.turn()
        assert self.service.reasons, "SHOW said nothing"
        assert all(word in self.service.reasons[-1] for word in words), self.service.reasons[-1]
        end()
        self.service.run_until(self.service.is_loaded(self.files * ROWS))
        self.service.turn()
        assert self.service.ids() == list(range(self.files * ROWS))
        assert self.service.lading.verify("j").is_clean


@pytest.mark.parametrize(
    "form", ["delta", *(pytest.param(form, marks=pytest.mark.slow) for form in ("iceberg", "paimon"))]
)
def test_a_disk_of_the_table_that_is_full_or_read_only(disk: Disk, tmp_path: Path, form: str) -> None:
    shop = Shop(tmp_path, tmp_path / "home", disk.path / "lake", form)
    shop.strike(disk.fill, disk.free, "PAUSED", "/_lading/", "No space left on device", "Check the disk")
    shop.strike(disk.lock, disk.unlock, "PAUSED", "/_lading/", "Read-only file system", "Check the disk")
    shop.service.close()


def test_a_home_that_is_full_and_later_read_only(disk: Disk, tmp_path: Path) -> None:
    shop = Shop(tmp_path, disk.path / "home", tmp_path / "lake", "delta")
    shop.strike(disk.fill, disk.free, "could not be recorded", "lading.db says: database or disk is full")
    shop.service.close()
    # This one cannot be made read-only while files are open: the service is started on one that is.
    disk.lock()
    shop.put()
    with pytest.raises(LadingError, match=r"(?i)read-?only"):
        shop.service.restart()
    disk.unlock()
    shop.service.restart()
    shop.service.run_until(shop.service.is_loaded(shop.files * ROWS))
    assert shop.service.ids() == list(range(shop.files * ROWS))
    shop.service.close()


def test_a_home_that_becomes_read_only_while_the_service_runs(failing_disk: FailingDisk, tmp_path: Path) -> None:
    shop = Shop(tmp_path, failing_disk.path / "home", tmp_path / "lake", "delta")
    service = shop.service
    service.run_until(service.is_loaded(ROWS))
    version = service.lading.catalog.open_table("default", "t").version()
    failing_disk.fail()
    shop.put()
    service.forget()
    for _ in range(4):
        service.turn()
    told = service.reasons[-1]
    assert "could not be recorded" in told
    assert "lading.db says: disk I/O error: Read-only file system" in told
    assert service.refusals == [], "SHOW still answers"
    assert DeltaTable(str(tmp_path / "lake")).version() == version, "nothing is committed that cannot be written down"
    with pytest.raises(LadingError):
        service.sql('PAUSE JOB WHERE jobname = "j"')
    service.lading.close()
    failing_disk.repair()
    service.restart()
    service.run_until(service.is_loaded(shop.files * ROWS))
    service.turn()
    assert service.ids() == list(range(shop.files * ROWS))
    assert service.lading.verify("j").is_clean
    service.close()


def test_a_disk_of_the_table_that_becomes_read_only_in_the_middle_of_a_commit(disk: Disk, tmp_path: Path) -> None:
    shop = Shop(tmp_path, tmp_path / "home", disk.path / "lake", "delta")

    def lock_at_the_commit() -> None:
        failpoints.arm("commit.before", lambda _name: disk.lock())

    def unlock() -> None:
        failpoints.disarm_all()
        disk.unlock()

    shop.strike(lock_at_the_commit, unlock, "PAUSED", "Read-only file system")
    shop.service.close()


@pytest.mark.parametrize("hours", [7, -7])
def test_a_clock_that_jumps_by_hours_while_a_job_is_paused(disk: Disk, tmp_path: Path, hours: int) -> None:
    shop = Shop(tmp_path, tmp_path / "home", disk.path / "lake", "delta")

    def fill_and_jump() -> None:
        disk.fill()
        shop.service.clock.jump = timedelta(hours=hours)

    def free_and_jump() -> None:
        disk.free()
        shop.service.clock.jump = timedelta()

    shop.strike(fill_and_jump, free_and_jump, "PAUSED", "No space left on device")
    shop.service.close()


def test_a_scratch_folder_that_cannot_be_written_is_named(disk: Disk, tmp_path: Path) -> None:
    settings = {"spark.local.dir": f"{tmp_path}/a,{disk.path}/b"}
    assert scratch_fault(settings, tmp_path) == ""
    disk.fill()
    assert scratch_fault(settings, tmp_path).endswith(f"{disk.path}/b (spark.local.dir) cannot be written: {FULL}")
    disk.free()
    disk.lock()
    assert "Read-only file system" in scratch_fault(settings, tmp_path)
    assert scratch_fault({}, tmp_path) == ""
