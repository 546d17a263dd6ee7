"""`lading apply`: a plan from files, made so, and nothing to do the second time; without a service and through one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lading.errors import ConfigError, SqlError
from lading.http.app import create_app
from lading.http.server import HttpServer
from lading.service.facade import Lading
from lading.service.runtime.address_file import ServiceAddress, remove_address, write_address
from lading.testing.marked import MARK, secret
from tests.cli.test_config_file import run

TABLES = """
CREATE DATABASE IF NOT EXISTS shop;
USE shop;
CREATE TABLE IF NOT EXISTS orders (id BIGINT NOT NULL, city VARCHAR(10)) USING delta;
"""
JOB = """
USE shop;
CREATE JOB orders PROPERTIES ("max_interval" = "5") ON STREAMING DO
INSERT INTO orders SELECT * FROM FILE(
    "uri" = "{inbox}/*.csv", "format" = "csv_with_names", "column_separator" = ","
);
"""


class Files:
    """A home, and a folder of statements as Git would have it."""

    def __init__(self, path: Path) -> None:
        self.home, self.folder, inbox = path / "home", path / "jobs", path / "in"
        self.folder.mkdir()
        inbox.mkdir()
        run("init", "--home", str(self.home))
        self.job = JOB.format(inbox=inbox)
        # The order of the files does not matter.
        self.write("1-job.sql", self.job)
        self.write("2-tables.sql", TABLES)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def apply(self, *options: str) -> tuple[int, str]:
        return run("apply", str(self.folder), "--home", str(self.home), *options)

    def sql(self, text: str) -> list[tuple[object, ...]]:
        with Lading(self.home) as lading:
            return list(lading.sql(text)[-1].rows)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_a_plan_is_shown_made_so_and_then_there_is_nothing_to_do(files: Files) -> None:
    code, said = files.apply("--dry-run")
    assert code == 1
    assert [line.split()[:2] for line in said.splitlines()[:3]] == [["+", "create"]] * 3
    assert ("shop",) not in files.sql("SHOW DATABASES")
    code, said = files.apply()
    assert (code, "add --yes" in said) == (1, True)
    code, said = files.apply("--yes")
    assert (code, said.count("done")) == (0, 3)
    code, said = files.apply("--yes")
    assert (code, "Nothing to do." in said, said.count("unchanged")) == (0, True, 3)


def test_what_differs_is_shown_and_changed_and_a_job_goes_on(files: Files) -> None:
    files.apply("--yes")
    mapped = files.job.replace("orders SELECT *", "orders (id, city) SELECT id, upper(city) AS city")
    files.write("1-job.sql", mapped.replace('"5"', '"9"'))
    files.write("2-tables.sql", TABLES.replace("VARCHAR(10))", "VARCHAR(10), note STRING)"))
    code, said = files.apply("--dry-run")
    assert code == 1
    assert "ADD COLUMN note string" in said
    assert "property max_interval: 5 → 9" in said
    assert "upper(city)" in said
    before = files.sql("SELECT Status FROM jobs('type'='insert')")
    code, said = files.apply("--yes")
    assert (code, said.count("done")) == (0, 2), said
    assert ("note", "string", "Yes") in files.sql("DESCRIBE shop.orders")
    [[_, shown]] = files.sql("SHOW CREATE JOB orders")
    assert "upper(city)" in str(shown)
    assert '"max_interval" = "9"' in str(shown)
    assert "PAUSED" not in str([before, files.sql("SELECT Status FROM jobs('type'='insert')")])
    assert files.apply("--yes")[0] == 0
    files.sql("PAUSE JOB WHERE jobName = 'orders'")
    files.write("1-job.sql", mapped.replace('"5"', '"7"'))
    assert files.apply("--yes")[0] == 0
    assert files.sql("SELECT Status FROM jobs('type'='insert')") == [("PAUSED",)], "one that was paused stays so"


def test_jobs_that_are_not_in_the_files_are_extra_until_they_are_pruned(files: Files) -> None:
    files.apply("--yes")
    files.sql(files.job.replace("CREATE JOB orders", "CREATE JOB other"))
    code, said = files.apply()
    assert (code, "? extra     job other" in said) == (0, True)
    code, said = files.apply("--prune", "--yes")
    assert (code, "- drop      job other" in said) == (0, True)
    assert files.sql("SELECT Name FROM jobs('type'='insert') WHERE Status <> 'STOPPED'") == [("orders",)]
    assert files.sql("SHOW TABLES FROM shop") == [("orders",)]


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        ("1-job.sql", "INSERT INTO orders", "INSERT INTO others", "shop.orders from FILE is shop.others from FILE"),
        ("1-job.sql", 'PROPERTIES ("max_interval" = "5") ', "", "property max_interval is set"),
        ("2-tables.sql", "id BIGINT", "id STRING", "column id is bigint, and string in the file"),
    ],
)
def test_what_no_statement_can_change_stops_before_anything_is_done(
    files: Files, name: str, old: str, new: str, told: str
) -> None:
    files.apply("--yes")
    files.write("3-more.sql", "CREATE DATABASE more;")
    files.write(name, (files.folder / name).read_text().replace(old, new))
    code, said = files.apply("--yes")
    assert (code, told in said) == (2, True), said
    assert ("more",) not in files.sql("SHOW DATABASES")


def test_files_that_cannot_be_used_are_named(files: Files) -> None:
    files.write("3-more.sql", "DROP DATABASE shop;")
    with pytest.raises(ConfigError, match=r"3-more.sql has a statement that lading apply does not take: DROP"):
        files.apply("--yes")
    files.write("3-more.sql", "CREATE TABEL x;")
    with pytest.raises(SqlError, match=r"3-more.sql: "):
        files.apply("--yes")
    files.write("3-more.sql", TABLES)
    with pytest.raises(ConfigError, match="have database shop twice"):
        files.apply("--yes")


def test_secrets_are_not_shown(files: Files) -> None:
    files.apply("--yes")
    files.write(
        "3-catalog.sql",
        'CREATE CATALOG lake PROPERTIES ("type"="iceberg", "iceberg.catalog.type"="jdbc", '
        f'"uri"="jdbc:postgresql://127.0.0.1:1/x", "iceberg.jdbc.user"="u", "iceberg.jdbc.password"="{secret("pg")}");',
    )
    code, said = files.apply("--dry-run")
    assert (code, "+ create    catalog lake" in said, MARK in said) == (1, True, False)
    (files.folder / "3-catalog.sql").unlink()


@contextmanager
def serving(home: Path) -> Iterator[None]:
    with Lading(home) as lading:
        server = HttpServer(create_app(lading))
        server.start("127.0.0.1", 0)
        http = f"http://127.0.0.1:{server.port}"
        write_address(home, ServiceAddress(pid=os.getpid(), http=http, mysql_port=0, token=secret("token")))
        try:
            yield
        finally:
            remove_address(home)
            server.close()


def test_the_same_through_a_service(files: Files) -> None:
    with serving(files.home):
        assert files.apply("--dry-run")[0] == 1
        code, said = files.apply("--yes")
        assert (code, said.count("done")) == (0, 3), said
        files.write("1-job.sql", files.job.replace('"5"', '"9"'))
        code, said = files.apply("--yes")
        assert (code, "property max_interval: 5 → 9" in said) == (0, True), said
        code, said = files.apply("--yes")
        assert (code, "Nothing to do." in said) == (0, True)
