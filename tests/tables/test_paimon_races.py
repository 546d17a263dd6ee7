"""What others do to a Paimon table at the worst moment, and values and options that other engines see differently."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lading.commit.rollback import RollbackSight
from lading.commit.steps import run_steps
from lading.errors import CommitRefusedError, ConfigError, StorageError
from lading.model.outcome import Landed, Unknown
from lading.model.table import Column, TableSpec
from lading.tables.maintenance import CarePolicy
from lading.tables.paimon.kind import KIND
from lading.tables.paimon.table import PaimonTable
from tests.tables.drive import SPEC, driver, ids, load, new_job, opening, put_and_commit, some_rows
from tests.tables.optional import skip_without
from tests.tables.rig_paimon import PaimonRig, append, paimon_local, read


@pytest.fixture
def rig(tmp_path: Path) -> PaimonRig:
    skip_without(KIND)
    made = paimon_local(tmp_path, None)
    made.create("clicks", SPEC)
    return made


class Hooked:
    """A storage in which something happens once, behind a listing or before a put of a snapshot."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.after_listing: Callable[[], object] | None = None
        self.before_put: Callable[[], object] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def keys(self, prefix: str, **more: Any) -> Iterator[str]:
        listed = list(self._inner.keys(prefix, **more))
        if prefix.startswith("snapshot/") and self.after_listing is not None:
            happens, self.after_listing = self.after_listing, None
            happens()
        return iter(listed)

    def put_if_absent(self, key: str, content: bytes) -> bool:
        if key.startswith("snapshot/snapshot-") and self.before_put is not None:
            happens, self.before_put = self.before_put, None
            happens()
        return bool(self._inner.put_if_absent(key, content))


def test_bounds_of_milliseconds_are_milliseconds(rig: PaimonRig) -> None:
    """Readers skipped the file: the bounds of a column that another engine had added were a thousandth of the truth."""
    from pypaimon.schema.data_types import AtomicType
    from pypaimon.schema.schema_change import SchemaChange

    rig.catalog().alter_table("lake.clicks", [SchemaChange.add_column("at", AtomicType("TIMESTAMP(3)"))])
    table, job = rig.reopen("clicks"), new_job()
    first = opening(job)
    put_and_commit(table, first)
    moments = pa.array([datetime(2026, 1, 1), datetime(2026, 6, 1)], pa.timestamp("us"))  # noqa: DTZ001
    rows = some_rows(1, 2).append_column("at", moments)
    assert isinstance(put_and_commit(table, load(job, first, rig.stage(table, rows, "a"))), Landed)
    builder = rig.stranger("clicks").new_read_builder()
    since = builder.new_predicate_builder().greater_or_equal("at", datetime(2025, 1, 1))  # noqa: DTZ001
    filtered = builder.with_filter(since)
    assert filtered.new_read().to_arrow(filtered.new_scan().plan().splits()).num_rows == 2


def test_a_moment_that_python_does_not_know_has_no_bounds(rig: PaimonRig) -> None:
    spec = TableSpec(columns=(Column(name="id", type="bigint"), Column(name="at", type="timestamp_ntz")))
    table, job = rig.create("late", spec), new_job()
    first = opening(job)
    put_and_commit(table, first)
    rows = pa.table({"id": [1], "at": pa.array([253_402_300_800_000_000], pa.timestamp("us"))})  # The year 10000.
    assert isinstance(put_and_commit(table, load(job, first, rig.stage(table, rows, "a"))), Landed)
    assert read(rig.stranger("late")).num_rows == 1


def test_one_refused_put_does_not_end_a_new_job(rig: PaimonRig) -> None:
    """In a table whose first snapshots have expired, every later start said that nobody can tell what landed."""
    for number in range(3):
        append(rig.stranger("clicks"), some_rows(number * 10, 1))
    rig.expire_all_but_newest("clicks")
    job, table = new_job(), rig.reopen("clicks")
    with rig.fail_once(table), pytest.raises(CommitRefusedError):
        driver(rig, table, job).start()
    assert driver(rig, rig.reopen("clicks"), job).start().seq == 0


def test_a_snapshot_that_expires_behind_a_listing_is_no_empty_table(rig: PaimonRig) -> None:
    for number in range(4):
        append(rig.stranger("clicks"), some_rows(number * 10, 1))
    storage = Hooked(rig.storage("clicks"))
    storage.after_listing = lambda: rig.stranger("clicks").rollback_to(3)
    assert PaimonTable(storage, rig._options).version() == 3


def test_a_table_that_cannot_be_listed_is_no_empty_table(rig: PaimonRig) -> None:
    append(rig.stranger("clicks"), some_rows(0, 1))
    storage = Hooked(rig.storage("clicks"))
    storage.get = lambda key: None if key.startswith("snapshot/snapshot-") else rig.storage("clicks").get(key)  # type: ignore[attr-defined]
    with pytest.raises(StorageError, match="removed each time before it is read"):
        PaimonTable(storage, rig._options).version()


def test_a_commit_that_others_have_gone_past_does_not_land(rig: PaimonRig) -> None:
    """Its number was free again: they had committed past it, and let it expire, while the loader slept."""
    storage = Hooked(rig.storage("clicks"))
    table, job = PaimonTable(storage, rig._options), new_job()
    first = opening(job)
    assert isinstance(put_and_commit(table, first), Landed)

    def go_past() -> None:
        for number in range(3):
            append(rig.stranger("clicks"), some_rows(100 + number, 1))
        rig.expire_all_but_newest("clicks")

    staged = rig.stage(table, some_rows(0, 2), "a")
    storage.before_put = go_past
    outcome = put_and_commit(table, load(job, first, staged))
    assert isinstance(outcome, Unknown)
    assert sorted(read(rig.stranger("clicks"))["id"].to_pylist()) == [100, 101, 102]


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("manifest.format", "parquet", "manifest.format"),
        ("bucket-key", "id", "bucket-key"),
        ("deletion-vectors.enabled", "TRUE ", "deletion-vectors.enabled"),
    ],
)
def test_options_that_other_engines_refuse_are_refused(rig: PaimonRig, name: str, value: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        rig.create("odd", TableSpec(columns=SPEC.columns, properties={name: value}))


def test_names_that_paimon_keeps_for_itself_are_refused(rig: PaimonRig) -> None:
    columns = (*SPEC.columns, Column(name="_SEQUENCE_NUMBER", type="bigint"))
    with pytest.raises(ConfigError, match="keeps for itself"):
        rig.create("odd", TableSpec(columns=columns))


def test_an_accepted_rollback_is_known_although_its_process_died_before_its_note(rig: PaimonRig) -> None:
    job = new_job()
    loader = driver(rig, rig.reopen("clicks"), job)
    loader.start()
    for _ in range(4):
        loader.run_batch()
    rig.stranger("clicks").rollback_to(3)
    table = rig.reopen("clicks")
    end = table.ends_with(job.job_id)
    assert end is not None
    sight = RollbackSight(
        head=table.read_head_unchecked(job.job_id), restored=end, goes_on=end, version=table.version()
    )
    bill = run_steps(driver(rig, table, job).coordinator.accept_rollback(sight, reason="meant"))
    storage = rig.storage("clicks")
    note = f"{bill.head.seq}-{bill.head.token}.landed"
    storage.delete([key for key in storage.keys(f"schema/_lading/{job.job_id}/") if key.endswith(note)])
    assert rig.reopen("clicks").read_head(job.job_id) == bill.head
    again = driver(rig, rig.reopen("clicks"), job)
    again.start()
    again.run_batch()
    assert len(set(ids(rig, rig.reopen("clicks")))) == len(ids(rig, rig.reopen("clicks")))


@pytest.mark.parametrize(
    ("name", "value"), [("snapshot.time-retained", "99999999999 d"), ("snapshot.num-retained.min", "²")]
)
def test_words_of_the_table_that_nobody_understands_remove_nothing(rig: PaimonRig, name: str, value: str) -> None:
    table, job = rig.create("kept", TableSpec(columns=SPEC.columns, properties={name: value})), new_job()
    loader = driver(rig, table, job)
    loader.start()
    for _ in range(3):
        loader.run_batch()
    before = rig.versions("kept")
    PaimonTable(rig.storage("kept"), rig._options).look_after(job.job_id, CarePolicy(keep_commits=1), datetime.now(UTC))
    assert rig.versions("kept") == before
