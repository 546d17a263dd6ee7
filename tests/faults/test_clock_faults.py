"""Clocks that jump by hours and days, forwards and back: leases, cleaning, and jobs that go on all the while."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from lading import failpoints
from lading.service.security.key_file import KEY_FILE
from tests.faults.rig import Service
from tests.faults.test_disk_faults import ROWS, Shop
from tests.store.conftest import postgres as postgres
from tests.store.postgres import PostgresServer


@pytest.fixture(autouse=True)
def no_failpoints() -> Iterator[None]:
    yield
    failpoints.disarm_all()


class Pair:
    """Two services that share a store. The first one has the job."""

    def __init__(self, path: Path, url: str) -> None:
        self.one = Shop(path, path / "one", path / "lake", "delta", store_url=url)
        (path / "two").mkdir(mode=0o700)
        shutil.copy2(path / "one" / KEY_FILE, path / "two")  # They share their secrets.
        self.two = Service(path / "two", store_url=url)
        self.services = (self.one.service, self.two)
        self.round()

    def round(self) -> None:
        for each in self.services:
            each.lading.leases.look(each.lading.give_back)

    def holder(self) -> str:
        (found,) = self.two.lading.store.list_leases().values()
        return found


@pytest.mark.parametrize("hours", [7, -7])
def test_a_service_whose_clock_jumps_keeps_its_jobs_and_gets_none_of_others(
    postgres: PostgresServer, tmp_path: Path, hours: int
) -> None:
    pair = Pair(tmp_path, postgres.fresh_url())
    one, two = pair.services
    mine = one.lading.leases.service_id
    one.run_until(one.is_loaded(ROWS))
    for service in (one, two, one):
        service.clock.jump = timedelta(hours=hours) - service.clock.jump  # There, and for the last one back again.
        pair.one.put()
        for _ in range(3):
            pair.round()
            one.turn()
        assert pair.holder() == mine
    assert (one.errors, one.reasons) == ([], [])
    assert one.ids() == list(range(pair.one.files * ROWS))
    # A service that is dead is replaced also by one whose clock was set.
    for _ in range(10):
        two.clock.sleep(2)
        two.lading.leases.look(two.lading.give_back)
    assert pair.holder() == two.lading.leases.service_id
    pair.one.put()
    two.run_until(two.is_loaded(pair.one.files * ROWS))
    one.turn()
    assert two.ids() == list(range(pair.one.files * ROWS))
    assert two.lading.verify("j").is_clean
    for each in pair.services:
        each.close()


@pytest.mark.parametrize("is_open", [True, False])
def test_cleaning_takes_no_file_of_a_running_batch_when_the_clock_has_jumped_ahead(
    tmp_path: Path, is_open: bool
) -> None:
    """Also when it was ahead before the service was opened: the place of the files has a clock of its own."""
    shop = Shop(tmp_path, tmp_path / "home", tmp_path / "lake", "delta")
    service = shop.service
    service.run_until(service.is_loaded(ROWS))
    service.clock.jump = timedelta(days=4)
    if not is_open:
        service.restart()
    shop.put()
    cleaned: list[object] = []
    failpoints.arm("stage.after", lambda _name: cleaned.extend(service.sql("ADMIN CLEAN ORPHANS")))
    service.turn()
    failpoints.disarm_all()
    assert cleaned == []
    assert (service.errors, service.reasons) == ([], [])
    assert service.ids() == list(range(2 * ROWS)), "the batch was committed at its first attempt"
    service.clock.jump = timedelta(days=-4)
    assert service.sql("ADMIN CLEAN ORPHANS") == []
    named = {uri.rpartition("/")[2] for uri in DeltaTable(str(tmp_path / "lake")).file_uris()}
    assert {path.name for path in (tmp_path / "lake").glob("*.parquet")} == named
    assert service.lading.verify("j").is_clean
    service.close()
