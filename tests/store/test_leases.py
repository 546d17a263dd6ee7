"""Leases in both databases: one holder at most, and no change of a job without its lease."""

from __future__ import annotations

import threading

import pytest

from lading.errors import FencedError
from lading.ids import JobId
from lading.store.records import ServiceEntry
from lading.store.store import Store
from tests.jobs.story import START
from tests.store.conftest import OpenStore
from tests.store.samples import job

JOB = JobId("one")


def service(name: str, beat: int = 1) -> ServiceEntry:
    return ServiceEntry(service_id=name, host="h", pid=1, home=f"/{name}", started_at=START, beat=beat)


def test_services_say_that_they_live_and_say_goodbye(store: Store) -> None:
    store.beat(service("a"))
    store.beat(service("b"))
    store.beat(service("a", 2))
    assert store.list_services() == [service("a", 2), service("b")]
    assert store.take_lease(JOB, "a", held_by=None)
    store.forget_service("a")
    assert store.list_services() == [service("b")]
    assert store.list_leases() == {}


def test_a_lease_is_taken_from_whom_it_was_seen_with(store: Store) -> None:
    assert store.take_lease(JOB, "a", held_by=None)
    assert not store.take_lease(JOB, "b", held_by=None)
    assert not store.take_lease(JOB, "b", held_by="c")
    assert store.take_lease(JOB, "b", held_by="a")
    store.drop_lease(JOB, "a")
    assert store.list_leases() == {JOB: "b"}
    store.drop_lease(JOB, "b")
    assert store.list_leases() == {}


def test_of_many_who_want_it_one_gets_it(open_another: OpenStore) -> None:
    stores, won = [open_another() for _ in range(4)], list[str]()

    def take(name: str, mine: Store) -> None:
        if mine.take_lease(JOB, name, held_by=None):
            won.append(name)

    threads = [threading.Thread(target=take, args=(f"s{n}", mine)) for n, mine in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert stores[0].list_leases() == {JOB: won[0]}


def test_a_service_without_the_lease_changes_nothing(store: Store) -> None:
    stored = store.create_job(job())
    record = stored.record
    with pytest.raises(FencedError, match="no service has it now") as caught:
        store.save_job(record, stored.version, held_by="a")
    assert caught.value.code == "LeaseLost"
    assert store.take_lease(record.job_id, "a", held_by=None)
    stored = store.save_job(record, stored.version, held_by="a")
    assert store.take_lease(record.job_id, "b", held_by="a")
    with pytest.raises(FencedError, match="service b has it"):
        store.save_job(record, stored.version, held_by="a")
    assert store.load_job_by_id(record.job_id).version == stored.version
    assert store.list_versions() == {record.job_id: stored.version}
    store.save_job(record, stored.version)  # A statement may come from any service.


def test_a_forgotten_job_leaves_no_lease(store: Store) -> None:
    record = store.create_job(job()).record
    store.take_lease(record.job_id, "a", held_by=None)
    store.forget_job(record.job_id)
    assert store.list_leases() == {}
