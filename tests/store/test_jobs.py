"""Jobs and tasks in the store."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from lading.errors import ConflictError, JobChangedError, JobNotFoundError
from lading.ids import JobId
from lading.jobs.events import PausedByUser, Stopped
from lading.jobs.record import JobKind, JobName, JobRecord
from lading.jobs.transition import transition
from lading.store.records import AuditEntry
from lading.store.store import Store
from tests.jobs.story import START
from tests.store.conftest import OpenStore
from tests.store.samples import HARD_TEXT, bill, job, task

ROUTINE = JobKind.ROUTINE


def stop(record: JobRecord) -> JobRecord:
    return transition(record, Stopped(at=START))[0]


def test_a_job_comes_back_as_it_was_also_for_another_process(store: Store, open_another: OpenStore) -> None:
    record = job()
    assert store.create_job(record).version == 1
    found = open_another().load_job_by_id(record.job_id)
    assert (found.record, found.version) == (record, 1)
    assert store.load_job_by_id(record.job_id) == found


def test_names_of_streaming_jobs_are_global(store: Store) -> None:
    store.create_job(job("orders", database="sales"))
    with pytest.raises(ConflictError, match="job name exist"):
        store.create_job(job("orders", database="other"))
    store.create_job(job("orders", kind=ROUTINE))


def test_names_of_routine_loads_belong_to_a_database(store: Store) -> None:
    store.create_job(job("clicks", kind=ROUTINE, database="sales"))
    store.create_job(job("clicks", kind=ROUTINE, database="other"))
    with pytest.raises(ConflictError, match="already used in db sales"):
        store.create_job(job("clicks", kind=ROUTINE, database="sales"))


def test_the_name_of_a_final_job_is_free(store: Store) -> None:
    first = job()
    stored = store.create_job(first)
    store.save_job(stop(first), stored.version)
    assert store.find_job(first.full_name) is None
    again = job()
    store.create_job(again)
    found = store.find_job(first.full_name)
    assert found is not None
    assert found.record == again
    assert len(store.list_jobs(include_final=True)) == 2
    assert [found.record for found in store.list_jobs()] == [again]


def test_a_final_job_is_found_when_it_is_asked_for(store: Store) -> None:
    old, new = job(kind=ROUTINE, age_s=60), job(kind=ROUTINE)
    for record in (old, new):
        store.save_job(stop(record), store.create_job(record).version)
    found = store.find_job(old.full_name, include_final=True)
    assert found is not None
    assert found.record.job_id == new.job_id
    elsewhere = JobName(kind=ROUTINE, name=old.name, database="other")
    assert store.find_job(elsewhere, include_final=True) is None


def test_a_job_id_is_never_used_twice(store: Store) -> None:
    first = job()
    store.save_job(stop(first), store.create_job(first).version)
    with pytest.raises(ConflictError):
        store.create_job(replace(job("another"), job_id=first.job_id))


def test_an_absent_job_is_an_error(store: Store) -> None:
    assert store.find_job(JobName(kind=ROUTINE, name="nobody", database="sales")) is None
    with pytest.raises(JobNotFoundError):
        store.load_job_by_id(JobId("nobody"))


def test_two_processes_cannot_overwrite_each_other(store: Store, open_another: OpenStore) -> None:
    record = job()
    store.create_job(record)
    other = open_another()
    mine, theirs = store.load_job_by_id(record.job_id), other.load_job_by_id(record.job_id)
    paused, _ = transition(theirs.record, PausedByUser(user="ann", at=START))
    assert other.save_job(paused, theirs.version).version == 2
    with pytest.raises(JobChangedError, match="version 1 was expected, 2 is there"):
        store.save_job(stop(mine.record), mine.version)
    assert store.load_job_by_id(record.job_id).record == paused


def test_saving_a_job_that_is_gone_is_an_error(store: Store) -> None:
    with pytest.raises(JobNotFoundError):
        store.save_job(job(), 1)


def test_tasks_and_audit_are_saved_with_the_record_or_not_at_all(store: Store) -> None:
    record = job()
    store.create_job(record)
    entry = AuditEntry(at=START, user="ann", action="PAUSE", job_id=record.job_id)
    with pytest.raises(JobChangedError):
        store.save_job(record, 7, tasks=[task(record.job_id, 1)], audit=entry)
    assert (store.list_tasks(record.job_id), store.list_audit()) == ([], [])
    store.save_job(record, 1, tasks=[task(record.job_id, 1)], audit=entry)
    assert (store.list_tasks(record.job_id), store.list_audit()) == ([task(record.job_id, 1)], [entry])


def test_a_refused_create_leaves_no_audit(store: Store) -> None:
    store.create_job(job())
    with pytest.raises(ConflictError):
        store.create_job(job(), audit=AuditEntry(at=START, user="ann", action="CREATE"))
    assert store.list_audit() == []


def test_the_last_hundred_tasks_are_kept_newest_first(store: Store) -> None:
    first, second = job("first"), job("second")
    for record in (first, second):
        store.create_job(record)
    store.save_job(first, 1, tasks=[task(first.job_id, number) for number in range(1, 131)])
    store.save_job(second, 1, tasks=[task(second.job_id, 1)])
    assert [kept.task_id for kept in store.list_tasks(first.job_id)] == list(range(130, 30, -1))
    assert len(store.list_tasks()) == 101
    changed = replace(task(first.job_id, 130), error="changed")
    store.save_job(first, 2, tasks=[changed])
    assert store.list_tasks(first.job_id)[0] == changed


def test_jobs_are_listed_oldest_first_by_kind_and_database(store: Store) -> None:
    names = [("b", ROUTINE, "sales", 1), ("a", ROUTINE, "other", 2), ("c", JobKind.STREAMING, "sales", 3)]
    for name, kind, database, age_s in names:
        store.create_job(job(name, kind=kind, database=database, age_s=age_s))
    assert [found.record.name for found in store.list_jobs()] == ["c", "a", "b"]
    assert [found.record.name for found in store.list_jobs(kind=ROUTINE)] == ["a", "b"]
    assert [found.record.name for found in store.list_jobs(database="sales")] == ["c", "b"]


def test_jobs_that_ended_long_ago_are_forgotten(store: Store) -> None:
    ended, alive = job("ended"), job("alive")
    for record in (ended, alive):
        store.create_job(record, tasks=[task(record.job_id, 1)])
        store.follow(bill(3, record.job_id))
    store.save_job(stop(ended), 1)
    assert store.forget_jobs_ended_before(START) == []
    assert store.forget_jobs_ended_before(START + timedelta(seconds=1)) == [ended.job_id]
    assert [found.record.name for found in store.list_jobs(include_final=True)] == ["alive"]
    assert [found.job_id for found in store.list_tasks()] == [alive.job_id]
    assert [store.followed_seq(record.job_id) for record in (ended, alive)] == [None, 3]


def test_text_that_databases_dislike_comes_back_unchanged(store: Store) -> None:
    record = job()
    store.create_job(record, tasks=[task(record.job_id, 1)])
    assert store.load_job_by_id(record.job_id).record.comment == HARD_TEXT
    assert store.list_tasks(record.job_id)[0].error == HARD_TEXT
