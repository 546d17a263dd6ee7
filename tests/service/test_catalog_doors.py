"""Catalogs of others at each door: MySQL's protocol, HTTP, the command line, the console.

The installation and the catalog `lake` both have a table sales.orders, with other columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pymysql
import pytest
from fastapi.testclient import TestClient
from pyiceberg.catalog.sql import SqlCatalog
from typer.testing import CliRunner, Result

from lading.cli.main import app as command
from lading.console.desk import Visitor
from lading.console.statement_check import Catalog, check_text
from lading.errors import DeniedError, LadingError
from lading.http.app import create_app
from lading.mysql.protocol.options import MysqlOptions
from lading.mysql.server import MysqlServer
from lading.service.catalog.definitions import read_definition
from lading.service.facade import Lading
from lading.service.security.mysql_users import MysqlUsers
from lading.sql.statements.catalogs import AlterCatalog, CreateCatalog
from lading.sql.statements.jobs import CreateJob
from lading.sql.syntax.parse import parse_statements
from lading.testing.marked import secret
from tests.http.rig import rules
from tests.logins import with_root
from tests.service.test_catalog_statements import properties
from tests.store.postgres import NoPostgresError, serve_postgres
from tests.support.rest_catalog import free_port

THEIRS = pa.schema([pa.field("theirs", pa.int64(), nullable=False), ("city", pa.string())])
OURS = "CREATE DATABASE sales; CREATE TABLE sales.orders (ours BIGINT) USING delta"
PASSWORD = secret("password of ann")
SOURCE = 'SELECT * FROM FILE("uri"="/tmp/nothing/*.csv", "format"="csv_with_names", "column_separator"=",")'


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The catalog of others, as a statement that makes it known."""
    path = tmp_path_factory.mktemp("doors")
    try:
        with serve_postgres(free_port()) as postgres:
            uri = postgres.new_database()
            place = {"uri": uri.replace("postgresql://", "postgresql+psycopg://"), "warehouse": f"file://{path}/lake"}
            theirs = SqlCatalog("lake", **place)
            theirs.create_namespace("sales")
            theirs.create_namespace("logs")
            theirs.create_table("sales.orders", THEIRS).update_spec().add_identity("city").commit()
            theirs.create_table("logs.visits", THEIRS)
            theirs.close()
            yield f"CREATE CATALOG lake {properties(uri, path)}"
    except NoPostgresError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def lading(made: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lading]:
    with Lading(tmp_path_factory.mktemp("doors") / "home") as opened:
        opened.sql(f"{made}; {OURS}")
        opened.sql(f"CREATE USER 'ann' IDENTIFIED BY '{PASSWORD}'; GRANT SELECT ON lake.logs.* TO 'ann'")
        yield opened


class Wire:
    """A client of MySQL's protocol."""

    def __init__(self, server: MysqlServer, **more: Any) -> None:
        self.connection = pymysql.connect(host="127.0.0.1", port=server.port, **{"user": "root", **more})

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(text)
            return [tuple(row) for row in cursor.fetchall()]

    def first(self, text: str) -> list[str]:
        return [row[0] for row in self.ask(text)]


@pytest.fixture(scope="module")
def server(lading: Lading) -> Iterator[MysqlServer]:
    with MysqlServer(lading, options=MysqlOptions(port=0, close_grace_s=2)) as started:
        yield started


@pytest.fixture
def wire(server: MysqlServer) -> Iterator[Wire]:
    made = Wire(server)
    yield made
    made.connection.close()


def test_mysql_tells_the_table_that_was_named(wire: Wire) -> None:
    for form in ("DESCRIBE {}", "SHOW COLUMNS FROM {}", "SHOW FULL COLUMNS FROM {}"):
        assert wire.first(form.format("sales.orders")) == ["ours"], form
        assert wire.first(form.format("lake.sales.orders")) == ["theirs", "city"], form
        assert wire.first(form.format("internal.sales.orders")) == ["ours"], form
    assert wire.first("SHOW COLUMNS FROM orders FROM lake.sales") == ["theirs", "city"]
    ((_, ours),) = wire.ask("SHOW CREATE TABLE sales.orders")
    assert "`ours`" in ours
    ((name, text),) = wire.ask("SHOW CREATE TABLE lake.sales.orders")
    assert name == "orders"
    assert "CREATE TABLE lake.sales.orders" in text
    assert "LOCATION" not in text
    assert "PARTITIONED BY (city)" in text
    assert wire.ask("SHOW INDEX FROM lake.sales.orders") == []
    assert wire.ask("SHOW CREATE DATABASE lake.logs") == [("logs", "CREATE DATABASE `lake`.`logs`")]
    for wrong in ("DESCRIBE lake.sales.nothing", "SHOW INDEX FROM lake.sales.nothing", "DESCRIBE nolake.sales.orders"):
        with pytest.raises(pymysql.err.Error, match="Unknown"):
            wire.ask(wrong)


def test_what_mysql_shows_of_a_table_of_a_catalog_runs_again(wire: Wire) -> None:
    ((_, text),) = wire.ask("SHOW CREATE TABLE lake.sales.orders")
    wire.ask(text.replace("lake.sales.orders", "lake.sales.copy"))
    try:
        ((_, again),) = wire.ask("SHOW CREATE TABLE lake.sales.copy")
        assert again == text.replace("lake.sales.orders", "lake.sales.copy")
    finally:
        wire.ask("DROP TABLE lake.sales.copy")


def test_mysql_switches_and_uses(wire: Wire, server: MysqlServer) -> None:
    wire.ask("SWITCH lake")
    assert wire.first("SHOW DATABASES") == ["logs", "sales"]
    assert wire.first("SHOW DATABASES LIKE 's%'") == ["sales"]
    assert wire.ask("SELECT DATABASE()") == [(None,)]
    assert wire.first("SHOW FULL TABLES FROM logs") == ["visits"]
    assert wire.first("SHOW TABLE STATUS FROM logs") == ["visits"]
    assert wire.first("DESCRIBE sales.orders") == ["theirs", "city"]
    assert wire.first("SHOW COLUMNS FROM sales.orders") == ["theirs", "city"]
    wire.connection.select_db("sales")  # COM_INIT_DB: one of the current catalog.
    assert wire.first("DESCRIBE orders") == ["theirs", "city"]
    assert wire.ask("SELECT DATABASE()") == [("sales",)]
    assert wire.first("SHOW TABLES LIKE 'o%'") == ["orders"]
    wire.ask("USE internal.sales")
    assert wire.first("SHOW COLUMNS FROM orders") == ["ours"]
    assert wire.first("SHOW DATABASES FROM lake LIKE '%'") == ["logs", "sales"]
    wire.connection.select_db("lake.logs")
    assert wire.first("SHOW TABLES") == ["visits"]
    wire.ask("USE lake.sales")
    assert wire.first("SHOW COLUMNS FROM orders") == ["theirs", "city"]
    wire.ask("SWITCH internal")
    assert "sales" in wire.first("SHOW DATABASES LIKE '%'")
    with pytest.raises(pymysql.err.Error, match="Unknown catalog"):
        wire.connection.select_db("no.such")
    there = Wire(server, database="lake.sales")
    assert there.first("DESCRIBE orders") == ["theirs", "city"]
    there.connection.close()


def test_a_catalog_of_the_file_is_one_at_every_door(made: str, tmp_path: Path) -> None:
    (statement,) = parse_statements(made)
    assert isinstance(statement, CreateCatalog)
    said = {**statement.properties, "iceberg.jdbc.catalog_name": "lake"}
    lines = "".join(f'"{name}" = "{value}"\n' for name, value in said.items())
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "lading.toml").write_text(f"[catalogs.pond]\n{lines}")
    with Lading(tmp_path / "home") as opened, MysqlServer(opened, options=MysqlOptions(port=0)) as started:
        there = Wire(started, database="pond.sales")
        assert there.first("DESCRIBE orders") == ["theirs", "city"]
        there.connection.select_db("pond.logs")
        assert there.first("SHOW TABLES") == ["visits"]
        tables = (
            "SELECT table_name FROM pond.information_schema.tables WHERE table_schema IN ('sales', 'logs') ORDER BY 1"
        )
        assert there.first(tables) == ["orders", "visits"]
        there.connection.close()
        known = Catalog(opened.store, Visitor(user="root"), opened.catalog.external.has)
        job = f"CREATE JOB j ON STREAMING DO INSERT INTO pond.sales.orders {SOURCE}"
        assert check_text(job, known=known).remarks == ()


def test_information_schema_is_that_of_the_catalog(wire: Wire) -> None:
    columns = (
        "SELECT column_name, table_catalog FROM {}information_schema.columns "
        "WHERE table_schema = {} AND table_name = 'orders'"
    )
    own, other = [("ours", "def")], [("theirs", "lake"), ("city", "lake")]
    assert wire.ask(columns.format("", "'sales'")) == own
    assert wire.ask(columns.format("lake.", "'sales'")) == other
    names = "SELECT table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' ORDER BY 1"
    assert wire.first(names) == ["orders"]
    wire.ask("USE lake.sales")
    assert wire.ask(columns.format("", "DATABASE()")) == other
    assert wire.ask(columns.format("internal.", "DATABASE()")) == own
    assert wire.first(names) == ["orders", "visits"]
    assert wire.first("SELECT schema_name FROM information_schema.schemata ORDER BY 1") == [
        "information_schema",
        "logs",
        "sales",
    ]
    # Not narrowed by what is not certain.
    either = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'logs' OR table_name = 'orders'"
    assert sorted(wire.first(either)) == ["orders", "visits"]
    wire.ask("USE information_schema")
    assert wire.first("SELECT table_name FROM tables WHERE table_schema = 'logs'") == ["visits"]
    with pytest.raises(pymysql.err.Error, match="One query cannot ask"):
        wire.ask("SELECT 1 FROM information_schema.tables a, internal.information_schema.tables b")


def test_mysql_hides_what_a_user_may_not_see(lading: Lading) -> None:
    users = MysqlUsers(with_root(lading.access))
    with MysqlServer(lading, authenticator=users, options=MysqlOptions(port=0, close_grace_s=2)) as server:
        ann = Wire(server, user="ann", password=PASSWORD)
        assert ann.first("SHOW DATABASES FROM lake LIKE '%'") == ["logs"]
        assert ann.first("DESCRIBE lake.logs.visits") == ["theirs", "city"]
        names = "SELECT table_name FROM lake.information_schema.tables WHERE table_type = 'BASE TABLE'"
        assert ann.first(names) == ["visits"]
        for form in ("DESCRIBE {}", "SHOW COLUMNS FROM {}", "SHOW CREATE TABLE {}", "SHOW INDEX FROM {}"):
            with pytest.raises(pymysql.err.Error):
                ann.ask(form.format("lake.sales.orders"))
        ann.connection.close()


@pytest.fixture
def wages(made: str) -> Iterator[str]:
    """A table in a namespace of `logs`, as somebody writes it who may read `lake.logs.*`."""
    (uri,), (lake,) = re.findall(r"postgresql://[^\"]+", made), re.findall(r"file:/[^\"]+", made)
    place = {"uri": uri.replace("postgresql://", "postgresql+psycopg://"), "warehouse": lake}
    theirs = SqlCatalog("lake", **place)
    theirs.create_namespace(("logs", "inner"))
    theirs.create_table(("logs", "inner", "wages"), THEIRS)
    yield "lake.logs.`inner.wages`"
    theirs.drop_table(("logs", "inner", "wages"))
    theirs.drop_namespace(("logs", "inner"))
    theirs.close()


def test_a_dot_in_a_name_is_no_way_into_another_namespace(lading: Lading, wages: str) -> None:
    root, ann = lading.session("root", is_trusted=True), lading.session("ann")
    assert [row[0] for row in root.sql("DESCRIBE lake.`logs.inner`.wages")[0].rows] == ["theirs", "city"]
    texts = [
        f"DESCRIBE {wages}",
        f"SELECT * FROM {wages}",
        f"ALTER TABLE {wages} ADD COLUMN x BIGINT",
        f"CREATE JOB w ON STREAMING DO INSERT INTO {wages} {SOURCE}",
        f'CREATE ROUTINE LOAD w ON {wages} FROM KAFKA("kafka_broker_list"="x:1", "kafka_topic"="t")',
        f"DROP TABLE {wages}",
        f"OPTIMIZE {wages}",
    ]
    for session in (root, ann):
        for text in texts:
            with pytest.raises(
                LadingError, match=r"has a dot in it|not a table of a database|command denied to user .ann."
            ):
                session.sql(text)
    with pytest.raises(LadingError, match="Unknown table"):
        lading.catalog.open_table("lake.logs", "inner.wages")
    with pytest.raises(DeniedError):
        ann.sql("DESCRIBE lake.`logs.inner`.wages")


def test_http_keeps_the_catalog_from_one_request_to_the_next(lading: Lading) -> None:
    client = TestClient(create_app(lading, rules=rules()), raise_server_exceptions=False)

    def post(sql: str, database: str = "default") -> dict[str, Any]:
        answer = client.post("/api/sql", json={"sql": sql, "database": database})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    switched = post("SWITCH lake")
    listed = post("SHOW DATABASES", switched["database"])
    assert listed["results"][0]["rows"] == [["logs"], ["sales"]]
    used = post("USE sales", listed["database"])
    assert [row[0] for row in post("DESCRIBE orders", used["database"])["results"][0]["rows"]] == ["theirs", "city"]
    back = post("SWITCH internal; USE sales", used["database"])
    assert [row[0] for row in post("DESCRIBE orders", back["database"])["results"][0]["rows"]] == ["ours"]
    assert [row[0] for row in post("DESCRIBE orders", "lake.sales")["results"][0]["rows"]] == ["theirs", "city"]
    for wrong in ("lake.nothing", "nolake.sales", "nolake."):
        assert client.post("/api/sql", json={"sql": "SHOW TABLES", "database": wrong}).status_code == 404


def test_the_command_line_names_tables_of_catalogs(made: str, tmp_path: Path) -> None:
    home = ["--home", str(tmp_path / "home")]

    def run(*words: str) -> Result:
        return CliRunner().invoke(command, [*words, *home])

    with Lading(tmp_path / "home") as lading:
        lading.sql(OURS)
    said = run("sql", "-e", f"{made}; SWITCH lake; USE sales; DESCRIBE orders; DESCRIBE internal.sales.orders")
    assert said.exit_code == 0, said.output
    assert "theirs" in said.output
    assert "ours" in said.output
    for there in ("sales.orders", "lake.sales.orders", "internal.sales.orders"):
        cleaned = run("clean", there, "--dry-run")
        assert (cleaned.exit_code, "0 files" in cleaned.output) == (0, True), cleaned.output
    missing = run("clean", "lake.sales.nothing", "--dry-run")
    assert missing.exit_code != 0
    assert "Unknown table 'nothing' in database 'lake.sales'" in str(missing.exception)


def test_the_console_checks_a_job_against_the_table_that_it_names(lading: Lading) -> None:
    known = Catalog(lading.store, Visitor(user="root"), lading.catalog.external.has)

    def target(text: str, database: str = "default") -> tuple[str, tuple[str, ...]]:
        checked = check_text(text, database=database, known=known)
        assert checked.mistake is None, checked.mistake
        (draft,) = checked.jobs
        return draft.target, checked.remarks

    job = f"CREATE JOB j ON STREAMING DO INSERT INTO {{}} {SOURCE};"
    assert target(job.format("lake.sales.orders")) == ("lake.sales.orders", ())
    assert target(job.format("sales.orders")) == ("sales.orders", ())
    assert target(job.format("internal.sales.orders")) == ("sales.orders", ())
    assert target(job.format("sales.orders"), "lake.logs") == ("lake.sales.orders", ())
    assert target("SWITCH lake; " + job.format("sales.orders")) == ("lake.sales.orders", ())
    assert target("USE lake.sales; " + job.format("orders")) == ("lake.sales.orders", ())
    assert target("SWITCH lake; SWITCH internal; " + job.format("sales.orders")) == ("sales.orders", ())
    name, remarks = target(job.format("sales.nothing"))
    assert (name, len(remarks)) == ("sales.nothing", 1)
    name, remarks = target(job.format("nolake.sales.orders"))
    assert (name, len(remarks)) == ("nolake.sales.orders", 1)
    routine = 'CREATE ROUTINE LOAD {} ON {} FROM KAFKA ("kafka_broker_list"="h:1", "kafka_topic"="t")'
    assert target(routine.format("lake.sales.r", "orders")) == ("lake.sales.orders", ())
    assert target(routine.format("sales.r", "lake.sales.orders")) == ("lake.sales.orders", ())
    assert target(routine.format("r", "orders"), "lake.sales") == ("lake.sales.orders", ())
    # A user who may not see a catalog learns nothing of it here.
    lading.sql("CREATE USER IF NOT EXISTS 'bob'")
    rights = lading.access.rights(lading.access.identity_for("bob"))
    bob = Catalog(lading.store, Visitor(user="bob", rights=rights), lading.catalog.external.has)
    for hidden in ("lake.sales.orders", "nolake.sales.orders"):
        assert check_text(job.format(hidden), known=bob).remarks == ()


def test_the_page_about_catalogs_runs(made: str, tmp_path: Path) -> None:
    """Every statement of the page, in its order. Two things of it are not here: the REST server of the first example,
    in whose place a catalog in PostgreSQL stands, and the bucket of the second, in whose place a folder stands.
    """
    page = (Path(__file__).parents[2] / "docs" / "catalogs.md").read_text()
    (tmp_path / "in").mkdir()
    ran: list[str] = []
    with Lading(tmp_path / "home") as opened:
        session = opened.session("root", is_trusted=True)
        opened.sql("CREATE USER 'ann'; CREATE ROLE 'loaders'")
        for text in re.findall(r"^```sql\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
            for statement in parse_statements(text):
                match statement:
                    case CreateCatalog(properties=said):
                        # It is read as it stands, and refused for nothing but the server that is not there.
                        assert read_definition(said).kind.value in ("rest", "glue", "jdbc", "hms")
                        if not opened.catalog.external.entries():
                            opened.sql(made)
                            opened.sql("CREATE TABLE IF NOT EXISTS lake.sales.orders (id BIGINT) USING iceberg")
                    case CreateJob(insert=insert):
                        place = {"uri": f"{tmp_path}/in/*.csv", "format": insert.source.properties["format"]}
                        source = replace(insert.source, name="FILE", properties={**place, "column_separator": ","})
                        (tmp_path / "in" / "a.csv").write_text("theirs,city\n1,essen\n")
                        session.execute(replace(statement, insert=replace(insert, source=source)))
                        opened.sql(f"DROP JOB WHERE jobName = '{statement.name}'")
                    case AlterCatalog(properties=dict() as said):
                        assert all(name.startswith("iceberg.rest.") for name in said)
                    case AlterCatalog(new_name=str()):
                        session.execute(statement)
                        opened.sql(f"ALTER CATALOG {statement.new_name} RENAME {statement.name}")
                    case _:
                        session.execute(statement)
                ran.append(type(statement).__name__)
    assert len(ran) > 15
    assert {"CreateCatalog", "CreateJob", "SwitchCatalog", "Grant", "DropTable"} <= set(ran)
