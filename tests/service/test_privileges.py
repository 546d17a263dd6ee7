"""Who may run what. Checked where statements are run, so it holds for every face."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lading.errors import DeniedError, JobNotFoundError
from lading.service.facade import Lading
from lading.service.session import Session

PASSWORD = "a-long-enough-password"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Lading]:
    (tmp_path / "in").mkdir()
    with Lading(tmp_path / "home") as lading:
        lading.sql(
            f"""CREATE DATABASE shop; CREATE DATABASE hr; USE shop;
            CREATE TABLE orders (id BIGINT) USING delta; CREATE TABLE hr.wages (id BIGINT) USING delta;
            CREATE USER ann IDENTIFIED BY '{PASSWORD}'; CREATE USER bob IDENTIFIED BY '{PASSWORD}';
            GRANT LOAD ON shop.orders TO ann; GRANT SELECT ON hr TO bob;
            CREATE JOB j ON STREAMING DO INSERT INTO orders SELECT id FROM FILE("uri"="{tmp_path}/in/*.json",
            "format"="json");"""
        )
        yield lading


def rows(session: Session, text: str) -> list[tuple[object, ...]]:
    return list(session.sql(text)[-1].rows)


def test_a_job_is_there_only_for_those_who_may_load_its_table(home: Lading) -> None:
    ann, bob = home.session("ann", "shop"), home.session("bob", "hr")
    assert rows(ann, 'SELECT Name FROM jobs("type"="insert")') == [("j",)]
    assert rows(bob, 'SELECT Name FROM jobs("type"="insert")') == []
    for text in (
        "PAUSE JOB WHERE jobName='j'",
        "SHOW CREATE JOB j",
        "EXPLAIN JOB j",
        "SHOW LOAD AUDIT FOR j",
        "DROP JOB WHERE jobName='j'",
        'ALTER JOB j PROPERTIES("max_interval"="3")',
        'EXPLAIN ALTER JOB j PROPERTIES("max_interval"="3")',
        "UNDO ALTER JOB j",
    ):
        with pytest.raises(DeniedError, match=r"LOAD command denied to user 'bob' for table 'shop\.orders'"):
            bob.sql(text)
    ann.sql("PAUSE JOB WHERE jobName='j'; RESUME JOB WHERE jobName='j'")


def test_tables_and_databases_are_there_only_for_those_who_may_use_them(home: Lading) -> None:
    ann, bob = home.session("ann"), home.session("bob")
    assert ("hr",) not in rows(ann, "SHOW DATABASES")
    assert ("shop",) not in rows(bob, "SHOW DATABASES")
    assert rows(ann, "USE shop; SHOW TABLES") == [("orders",)]
    with pytest.raises(DeniedError, match="'hr'"):
        ann.sql("USE hr")
    with pytest.raises(DeniedError, match="SELECT command denied"):
        ann.sql("DESCRIBE hr.wages")
    with pytest.raises(DeniedError, match=r"SELECT command denied to user 'ann' for table 'hr\.wages'"):
        ann.sql("SELECT * FROM hr.wages")
    with pytest.raises(DeniedError, match="SELECT command denied"):
        ann.sql("WITH x AS (SELECT id FROM hr.wages) SELECT * FROM x")


@pytest.mark.parametrize(
    "text",
    [
        "CREATE DATABASE mine",
        "DROP DATABASE shop",
        "CREATE TABLE shop.t (id BIGINT) USING delta",
        "DROP TABLE shop.orders",
        "CREATE USER eve",
        "GRANT ADMIN ON *.* TO ann",
    ],
)
def test_only_an_admin_changes_tables_and_users(home: Lading, text: str) -> None:
    with pytest.raises(DeniedError, match="ADMIN command denied to user 'ann'"):
        home.session("ann", "shop").sql(text)


def test_a_job_for_a_table_of_others_is_refused(home: Lading, tmp_path: Path) -> None:
    with pytest.raises(DeniedError, match=r"LOAD command denied to user 'ann' for table 'hr\.wages'"):
        home.session("ann", "shop").sql(
            f'CREATE JOB k ON STREAMING DO INSERT INTO hr.wages SELECT id FROM FILE("uri"="{tmp_path}/in/*.json", '
            '"format"="json")'
        )


def test_a_routine_load_of_others_does_not_exist(home: Lading) -> None:
    bob = home.session("bob", "shop")
    for text in ("SHOW ROUTINE LOAD FOR r", "PAUSE ROUTINE LOAD FOR r", "SHOW CREATE ROUTINE LOAD FOR r"):
        with pytest.raises(JobNotFoundError):
            bob.sql(text)
    assert rows(bob, "SHOW ROUTINE LOAD") == []


def test_a_grant_counts_from_the_next_statement_on(home: Lading) -> None:
    bob = home.session("bob", "shop")
    with pytest.raises(DeniedError):
        bob.sql("PAUSE JOB WHERE jobName='j'")
    home.sql("GRANT LOAD ON shop TO bob")
    bob.sql("PAUSE JOB WHERE jobName='j'")
    home.sql("REVOKE LOAD ON shop FROM bob")
    with pytest.raises(DeniedError):
        bob.sql("RESUME JOB WHERE jobName='j'")
