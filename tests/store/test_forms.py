"""Old stores are brought up to date, newer ones refused, and what is written once can be read for ever."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import insert, inspect, select

from lading.errors import ConfigError, RecordError, StoreError
from lading.jobs.pace import Pace, Suspect
from lading.jobs.record import JobRecord
from lading.model.batch import PoisonRecord, RecordPlace
from lading.model.load import LoadLimits, LoadSpec, MappingSpec, SourceSpec
from lading.service.security.users import Access
from lading.service.security.vault import Vault
from lading.store.bodies import parse_body, render_body
from lading.store.database import Database, parse_url
from lading.store.migrate import migrate
from lading.store.migrations import ALL_MIGRATIONS, Migration
from lading.store.records import GrantEntry, TableEntry, UserEntry
from lading.store.schema import METADATA, MIGRATIONS
from lading.store.store import Store, open_store
from lading.testing.clock import ManualClock
from tests.jobs.story import START
from tests.store.samples import job

RECORDED = Path(__file__).parent / "recorded"
NEXT = Migration(
    version=ALL_MIGRATIONS[-1].version + 1,
    name="next",
    statements=("CREATE TABLE lading_next (a {serial})", "ALTER TABLE lading_jobs ADD COLUMN b TEXT"),
)
BROKEN = replace(NEXT, statements=(*NEXT.statements, "ALTER TABLE no_such_table ADD COLUMN c TEXT"))


@pytest.fixture
def database(url: str) -> Database:
    return Database(url)


def test_the_tables_are_those_that_queries_expect(store: Store, database: Database) -> None:
    with database.read("Looking") as connection:
        looker = inspect(connection)
        there = {name: looker.get_columns(name) for name in looker.get_table_names() if name.startswith("lading_")}
        keys = {name: looker.get_pk_constraint(name)["constrained_columns"] for name in there}
    database.close()
    assert {name: [column["name"] for column in columns] for name, columns in there.items()} == {
        name: [column.name for column in table.columns] for name, table in METADATA.tables.items()
    }
    for name, table in METADATA.tables.items():
        assert keys[name] == [column.name for column in table.primary_key]
        for column in there[name]:
            assert column["nullable"] == table.c[column["name"]].nullable, (name, column["name"])


def test_a_store_of_this_form_is_opened_while_another_writes(tmp_path: Path) -> None:
    """Nothing is written for it, so that nobody is waited for."""
    place = str(tmp_path / "metadata.db")
    open_store(place, ManualClock()).close()
    with sqlite3.connect(place, isolation_level=None) as writer:
        writer.execute("BEGIN IMMEDIATE")
        with open_store(place, ManualClock()) as opened:
            assert opened.list_jobs() == []
        writer.execute("ROLLBACK")
    writer.close()


def test_each_migration_is_applied_once_and_noted(url: str, database: Database) -> None:
    steps = (*ALL_MIGRATIONS, NEXT)
    known = [(step.version, step.name, START) for step in steps]
    assert migrate(database, ALL_MIGRATIONS, START) == [version for version, _, _ in known[:-1]]
    assert migrate(database, steps, START) == [NEXT.version]
    assert migrate(database, steps, START) == []
    with database.read("Looking") as connection:
        noted = connection.execute(select(MIGRATIONS.c.version, MIGRATIONS.c.name, MIGRATIONS.c.applied_at)).all()
    database.close()
    assert [tuple(row) for row in noted] == known


def test_a_migration_that_fails_leaves_neither_its_effect_nor_its_note(database: Database) -> None:
    migrate(database, ALL_MIGRATIONS, START)
    with pytest.raises(StoreError, match=f"Migration {NEXT.version} failed"):
        migrate(database, (*ALL_MIGRATIONS, BROKEN), START)
    with database.read("Looking") as connection:
        assert "lading_next" not in inspect(connection).get_table_names()
        assert connection.execute(select(MIGRATIONS.c.version)).scalars().all() == [
            step.version for step in ALL_MIGRATIONS
        ]
    assert migrate(database, (*ALL_MIGRATIONS, NEXT), START) == [NEXT.version]
    database.close()


def test_versions_count_up_without_a_gap() -> None:
    assert [step.version for step in ALL_MIGRATIONS] == list(range(1, len(ALL_MIGRATIONS) + 1))


def test_an_old_store_keeps_its_jobs(url: str, database: Database, clock: ManualClock) -> None:
    migrate(database, ALL_MIGRATIONS[:1], START)
    record = job()
    with Store(Database(url)) as old:
        old.create_job(record)
    database.close()
    with open_store(url, clock) as new:
        assert new.load_job_by_id(record.job_id).record == record
        assert new.list_users() == []


def test_tokens_of_an_old_store_go_on_as_they_were(tmp_path: Path, clock: ManualClock) -> None:
    path = tmp_path / "old.db"
    with sqlite3.connect(path) as connection:
        connection.executescript((RECORDED / "users-2.sql").read_text())
    connection.close()
    with open_store(str(path), clock) as upgraded:
        access = Access(upgraded, clock, Vault([bytes(32)]))
        for name in ("jack", "root"):
            identity = access.check_token(f"lading_t00000000000{1 if name == 'jack' else 2}_recorded")
            assert (identity.user, identity.is_root, identity.scope) == (name, name == "root", None)
        assert [(entry.scope, entry.expires_at, entry.last_used_at) for entry in upgraded.list_access_tokens()] == [
            ("FULL", None, clock.now())
        ] * 2
        assert upgraded.list_grants("jack") == [
            GrantEntry(user="jack", privilege="LOAD", database="shop", table="orders")
        ]


def test_a_newer_store_is_refused_untouched(store: Store, url: str, database: Database, clock: ManualClock) -> None:
    with database.write("Pretending") as connection:
        connection.execute(insert(MIGRATIONS).values(version=99, name="future", applied_at=START))
    database.close()
    with pytest.raises(RecordError, match="has form 99; this Lading knows forms up to") as caught:
        open_store(url, clock)
    assert (caught.value.retry, caught.value.facts["version"]) == (False, 99)


def test_the_file_of_something_else_is_refused(tmp_path: Path, clock: ManualClock) -> None:
    text, other = tmp_path / "notes.txt", tmp_path / "other.db"
    text.write_text("not a database\n" * 100)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    with pytest.raises(RecordError, match="is not a SQLite database"):
        open_store(str(text), clock)
    with pytest.raises(RecordError, match="it has the table theirs"):
        open_store(str(other), clock)
    assert text.read_text() == "not a database\n" * 100


def test_a_path_may_have_any_letters(tmp_path: Path, clock: ManualClock) -> None:
    folder = tmp_path / "a ?b=1 %20 #c"
    folder.mkdir()
    with open_store(str(folder / "ü.db"), clock) as store:
        store.create_job(job())
    assert (folder / "ü.db").exists()


@pytest.mark.parametrize("url", ["mysql://x/y", "sqlite://", ":memory:", "post gres://", ""])
def test_other_places_are_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="The place of the metadata store is wrong"):
        parse_url(url)


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.json")), ids=lambda path: path.name)
def test_recorded_jobs_can_still_be_read(path: Path) -> None:
    record = parse_body(JobRecord, path.read_text(), where=path.name)
    assert parse_body(JobRecord, render_body(record), where="again") == record


def test_a_job_that_suspected_a_record_before_rows_of_files_were_can_still_be_read() -> None:
    place = RecordPlace(partition="0", at="17", words="offset 17", is_record=True)
    paced = Pace(least=place, suspects=(Suspect(place=place, deaths=2),), poison=PoisonRecord(place=place, reason="x"))
    now = json.loads(render_body(replace(job(), pace=paced)))
    old = json.loads(json.dumps(now).replace(', "inside": []', ""))
    assert old != now
    assert parse_body(JobRecord, json.dumps({**old, "version": 7}), where="old").pace == paced


def test_a_job_from_before_files_were_put_aside_can_still_be_read() -> None:
    place = RecordPlace(partition="0", at="17", words="offset 17", is_record=True)
    load = LoadSpec(
        name="j",
        target="a.b",
        source=SourceSpec(kind="FILE"),
        mapping=MappingSpec(),
        limits=LoadLimits(interval_s=1, size_bytes=1),
    )
    record = replace(job(), pace=Pace(poison=PoisonRecord(place=place, reason="x")), spec=load)
    now = render_body(record)
    old = json.loads(now.replace(', "is_checked": false', "").replace(', "on_error": "PAUSE"', ""))
    assert old != json.loads(now)
    assert parse_body(JobRecord, json.dumps({**old, "version": 8}), where="old") == record


def test_a_recorded_table_can_still_be_read() -> None:
    entry = parse_body(TableEntry, (RECORDED / "tables" / "orders-1.json").read_text(), where="recorded")
    assert (entry.name, entry.location, entry.spec) == ("orders", "/lake/orders", None)
    assert parse_body(TableEntry, render_body(entry), where="again") == entry


@pytest.mark.parametrize("path", sorted(RECORDED.glob("users/*.json")), ids=lambda path: path.name)
def test_recorded_users_can_still_be_read(path: Path) -> None:
    user = parse_body(UserEntry, path.read_text(), where=path.name)
    assert (user.name, user.native_verifier, user.sha2_verifier) == ("jack", "v1:sealed", "")
    assert parse_body(UserEntry, render_body(user), where="again") == user


def test_a_record_of_a_newer_form_is_refused() -> None:
    envelope = json.loads(render_body(job()))
    with pytest.raises(RecordError, match="reads forms up to"):
        parse_body(JobRecord, json.dumps({**envelope, "version": 99}), where="Job x")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1, "body": {}}', '{"version": 1, "body": 7}'])
def test_a_record_that_is_none_is_an_error_that_names_the_store(text: str) -> None:
    with pytest.raises(RecordError, match="Job x in the metadata store cannot be read"):
        parse_body(JobRecord, text, where="Job x")
