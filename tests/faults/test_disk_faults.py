"""Disks that are full or read-only, under the table, the quarantine and the home: said, and over when they are."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from lading.errors import LadingError
from lading.tables.registry import kind_of
from tests.faults.rig import Service
from tests.tables.optional import skip_without

ROWS = 50


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


class Shop:
    """A job from files into a table; one of home and lake is on the small disk."""

    def __init__(self, path: Path, home: Path, lake: Path, form: str) -> None:
        skip_without(kind_of(form))
        self.inbox, self.files = path / "in", 0
        self.inbox.mkdir()
        self.service = Service(home)
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
        """A fault that lasts for some turns: it is said in these words, and over when it is."""
        self.service.run_until(self.service.is_loaded(self.files * ROWS))
        begin()
        self.put()
        self.service.reasons.clear()
        for _ in range(6):
            self.service.turn()
        assert self.service.reasons, "nothing was said"
        assert any(word in self.service.reasons[-1] for word in words), self.service.reasons[-1]
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
    shop.strike(disk.fill, disk.free, "No space left", "space", "full")
    shop.strike(disk.lock, disk.unlock, "Read-only", "read-only")
    shop.service.close()


def test_a_home_that_is_full_and_later_read_only(disk: Disk, tmp_path: Path) -> None:
    shop = Shop(tmp_path, disk.path / "home", tmp_path / "lake", "delta")
    shop.strike(disk.fill, disk.free, "full")
    shop.service.close()
    # A disk whose files are open cannot be made read-only here: the service is started on one that is.
    disk.lock()
    shop.put()
    with pytest.raises(LadingError, match=r"(?i)read-?only"):
        shop.service.restart()
    disk.unlock()
    shop.service.restart()
    shop.service.run_until(shop.service.is_loaded(shop.files * ROWS))
    assert shop.service.ids() == list(range(shop.files * ROWS))
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

    shop.strike(fill_and_jump, free_and_jump, "No space left", "space", "full")
    shop.service.close()
