"""Statements about listeners: what is refused, and what ALTER changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lading.errors import DeniedError, SecretError, SqlError
from lading.service.security.listeners import listener_hosts
from lading.testing.marked import secret
from tests.service.listener_rig import CSV, IDLE, ClockedDesk
from tests.service.routine_fakes import Desk, bench
from tests.service.routine_words import KAFKA

__all__ = ["bench"]


@pytest.fixture
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ClockedDesk]:
    """Without Spark: statements only."""
    monkeypatch.setenv("HOOK_TOKEN", secret("hook"))
    made = ClockedDesk(tmp_path, None)
    yield made
    made.lading.close()


WRITTEN = secret("written")
MARKED = "'watermark.column'='at', 'partition.mark_done_mode'='watermark', 'listener.m.type'='success_file'"
TEXTS = f"{MARKED}, 'partition.time_interval'='1 day'"
TAG = f"{IDLE}, 'listener.t.type'='tag'"
FAR = "'partition.idle_time_to_done'='900000 days'"
HOOK = "'listener.h.type'='http', 'listener.h.url'='https://93.184.216.34/x'"


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ("'listener.h.type'='pigeon'", "listener.h.type is 'pigeon'"),
        ("'listener.h.url'='https://h.example'", "Listener h has no type"),
        (f"{IDLE}, 'listener.h.type'='http'", "A listener of type http needs listener.h.url"),
        (f"{IDLE}, 'listener.h.type'='http', 'listener.h.url'='ftp://h/'", "listener.h.url is not a URL of http"),
        (
            f"{IDLE}, 'listener.h.type'='http', 'listener.h.url'='http://a:{WRITTEN}@h/'",
            "has a user, a password or a fragment",
        ),
        (f"{IDLE}, {HOOK}, 'listener.h.token'='{WRITTEN}'", "listener.h.token is written out"),
        (f"{IDLE}, {HOOK}, 'listener.h.timeout'='5 minutes'", "listener.h.timeout should be up to 60 seconds"),
        (f"{IDLE}, {HOOK}, 'listener.h.path'='x'", "listener.h.path is not a property of a listener of type http"),
        (f"{IDLE}, 'listener.a b.type'='success_file'", "is not a property of a listener"),
        (f"{IDLE}, 'listener.t.type'='tag', 'listener.t.retain'='0'", "listener.t.retain should be more than 0"),
        (f"{MARKED}", "the table is partitioned by dt: none of it is a time"),
        (f"{MARKED}, 'partition.timestamp_formatter'='yyyy-MM-dd'", "partition.time_interval is missing"),
        (f"{TEXTS}, 'partition.timestamp_formatter'='YYYY'", "has other letters than yyyy, MM, dd, HH, mm and ss"),
        (f"{TEXTS}, 'partition.timestamp_pattern'='$nosuch'", "names nosuch that the table is partitioned by"),
        (f"{TEXTS}, 'partition.timestamp_formatter'='yyyy-yyyy'", "'yyyy-yyyy', and no time can be read by it"),
        (f"{TAG}, 'listener.t.retain'='900000 days'", "listener.t.retain should be up to 100 years"),
        (f"{FAR}, 'listener.m.type'='success_file'", "partition.idle_time_to_done should be up to 100 years"),
        (f"{MARKED}, 'partition.time_interval'='900000 days'", "partition.time_interval should be up to 100 years"),
        (HOOK, "A job with listeners needs partition.idle_time_to_done"),
        (IDLE, "the job has no listener that is told"),
        (f"{HOOK}, 'partition.mark_done_mode'='watermark'", "the job has no watermark"),
        (f"{IDLE}, {HOOK}, 'partition.time_interval'='1 day'", "time_zone are for watermark mode"),
        (f"{IDLE}, 'listener.h.type'='http', 'listener.h.url'='http://169.254.169.254/'", "always refused"),
    ],
)
def test_listeners_that_cannot_work_are_refused_at_create(plain: ClockedDesk, properties: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        plain.create_job(properties)
    assert message in str(caught.value)
    assert plain.sql('SELECT Name FROM jobs("type"="insert")') == []


def test_a_table_without_partitions_cannot_go_by_the_watermark(plain: ClockedDesk) -> None:
    with pytest.raises(SqlError, match="the table has no partitions that could end"):
        plain.create_job(MARKED, by="")


def test_partitions_of_sessions_cannot_go_by_the_watermark(plain: ClockedDesk) -> None:
    plain.sql("CREATE TABLE r (d DATE, n BIGINT) USING delta PARTITIONED BY (d)")
    with pytest.raises(SqlError, match="a session that began in a partition can last for any time"):
        plain.sql(
            f"CREATE JOB j PROPERTIES({MARKED}) ON STREAMING DO "
            "INSERT INTO r SELECT cast(window_start AS DATE), count(*) "
            f"FROM FILE('uri'='{plain.inbox}/*.csv', {CSV}) GROUP BY session_window(at, '5 minutes')"
        )


def test_a_job_that_ends_before_its_last_windows_has_no_listeners(plain: ClockedDesk) -> None:
    plain.sql("CREATE TABLE r (d DATETIME, n BIGINT) USING delta")
    listener, refusal = f"{IDLE}, 'listener.m.type'='success_file'", r"s3\.ingestion_mode is ONCE, the job has windows"

    def create(name: str, properties: str) -> None:
        plain.sql(
            f"CREATE JOB {name} PROPERTIES('watermark.column'='at', {properties}) ON STREAMING DO INSERT INTO r "
            f"SELECT window_start, count(*) FROM FILE('uri'='{plain.inbox}/*.csv', {CSV}) "
            "GROUP BY window(at, '1 minute')"
        )

    with pytest.raises(SqlError, match=refusal):
        create("j", f"'s3.ingestion_mode'='ONCE', {listener}")
    create("often", listener)
    create("once", "'s3.ingestion_mode'='ONCE'")
    plain.sql("PAUSE JOB WHERE jobName = 'once'")
    with pytest.raises(SqlError, match=refusal):
        plain.sql(f"ALTER JOB once PROPERTIES({listener})")


@pytest.mark.parametrize("rest", ["/x?ids=1,169.254.169.254", "?ids=1,2", "/x?mail=a@b.example"])
def test_a_url_names_one_host_whatever_is_in_its_query(plain: ClockedDesk, rest: str) -> None:
    url = f"https://93.184.216.34{rest}"
    plain.create_job(f"{IDLE}, 'listener.h.type'='http', 'listener.h.url'='{url}'")
    assert ("listener h", f"http {url}") in plain.sql("EXPLAIN JOB j")
    assert [(each.host, each.port) for each in listener_hosts({"listener.h.url": url})] == [("93.184.216.34", "https:")]


def test_a_command_that_the_owner_did_not_name_is_refused_also_for_administrators(plain: ClockedDesk) -> None:
    for command in ("/bin/sh", "notify"):
        with pytest.raises(SqlError, match="which is not the name of a command that jobs may run"):
            plain.create_job(f"{IDLE}, 'listener.c.type'='command', 'listener.c.command'='{command}'")
        plain.sql("DROP TABLE t")


def test_a_secret_that_is_not_there_is_refused_at_create(plain: ClockedDesk) -> None:
    with pytest.raises(SecretError, match="NO_SUCH_TOKEN"):
        plain.create_job(f"{IDLE}, {HOOK}, 'listener.h.token'='env:NO_SUCH_TOKEN'")


def test_alter_changes_listeners_and_a_token_does_not_go_elsewhere_unsaid(plain: ClockedDesk) -> None:
    plain.create_job(f"{IDLE}, {HOOK}, 'listener.h.token'='env:HOOK_TOKEN'")
    assert '"listener.h.token" = "env:HOOK_TOKEN"' in str(plain.sql("SHOW CREATE JOB j")[0])
    plain.sql("PAUSE JOB WHERE jobName = 'j'")
    with pytest.raises(SqlError, match="cannot be changed without the token"):
        plain.sql("ALTER JOB j PROPERTIES('listener.h.url'='https://93.184.216.35/x')")
    plain.sql("ALTER JOB j PROPERTIES('listener.h.url'='https://93.184.216.35/x', 'listener.h.token'='env:HOOK_TOKEN')")
    plain.sql("ALTER JOB j PROPERTIES('listener.m.type'='success_file', 'partition.idle_time_to_done'='2 hours')")
    plan = {str(what): str(how) for what, how in plain.sql("EXPLAIN JOB j")}
    assert plan["partition is done"] == "nothing was committed to it for 7200 s"
    assert (plan["listener h"], plan["listener m"]) == ("http https://93.184.216.35/x", "success_file")
    plain.sql("ALTER JOB j PROPERTIES('listener.h.type'='')")
    assert "listener h" not in {str(what) for what, _ in plain.sql("EXPLAIN JOB j")}


def test_a_user_cannot_have_the_service_call_its_own_network(plain: ClockedDesk) -> None:
    plain.sql("CREATE USER ann; CREATE TABLE t (id BIGINT, dt VARCHAR(20), at DATETIME) USING delta")
    plain.sql("GRANT LOAD ON shop.t TO ann")
    ann = plain.lading.session("ann")
    job = (
        "CREATE JOB j PROPERTIES('partition.idle_time_to_done'='1 hour', 'listener.h.type'='http', "
        "'listener.h.url'='http://127.0.0.1:8030/api/sql') ON STREAMING DO INSERT INTO shop.t SELECT id, dt, at "
        f"FROM S3('uri'='s3://b/*.csv', 's3.region'='eu-west-1', 's3.access_key'='{WRITTEN}', "
        f"'s3.secret_key'='{WRITTEN}', {CSV})"
    )
    with pytest.raises(DeniedError, match=r"listener\.h\.url = 127\.0\.0\.1 is an address in the private network"):
        ann.sql(job)


def test_a_routine_load_has_listeners_too(bench: Desk) -> None:
    bench.sql(f"CREATE ROUTINE LOAD j ON t PROPERTIES({IDLE}, 'listener.m.type'='success_file') {KAFKA.format('')}")
    bench.run()
    statistic = json.loads(bench.show()["Statistic"])
    assert statistic | {"openPartitions": 0, "pendingNotices": 0, "rowsAfterDone": 0} == statistic
    bench.sql("PAUSE ROUTINE LOAD FOR j")
    with pytest.raises(SqlError, match=r"listener\.m\.type is 'pigeon'"):
        bench.sql("ALTER ROUTINE LOAD FOR j PROPERTIES('listener.m.type'='pigeon')")
    bench.sql("ALTER ROUTINE LOAD FOR j PROPERTIES('listener.d.type'='done_partition', 'listener.m.type'='')")
    assert '"listener.d.type" = "done_partition"' in str(bench.sql("SHOW CREATE ROUTINE LOAD FOR j"))
    plan = {str(what): str(how) for what, how in bench.sql("EXPLAIN ROUTINE LOAD j")}
    assert plan["listener d"] == "done_partition"
    assert "listener m" not in plan
