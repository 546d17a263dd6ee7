"""Holes that a second attack found, each closed: who may use whose keys, ports, names and logins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest

from lading.errors import ConfigError, DeniedError, LadingError, SqlError
from lading.mysql.protocol.options import MysqlOptions
from lading.mysql.server import MysqlServer
from lading.service.facade import Lading
from lading.service.security.mysql_users import MysqlUsers
from lading.service.statements.reach import check_source
from lading.sources.kafka import kind as kafka_kind
from lading.sql.statements.parts import SourceFunction
from lading.testing.marked import secret
from tests.logins import ROOT_PASSWORD, with_root
from tests.service.routine_fakes import FakeKafka, World

MSK = (
    '"kafka_broker_list"="evil.example:9098", "kafka_topic"="t", "property.security.protocol"="SASL_SSL", '
    '"property.sasl.mechanism"="OAUTHBEARER", "aws.region"="eu-west-1"'
)
KEYS = {"s3.access_key": secret("key"), "s3.secret_key": secret("own")}
EMPTY_AWS = '"aws.access_key"="", "aws.secret_key"=""'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lading]:
    world = World()
    monkeypatch.setattr(kafka_kind, "make_source", lambda spec, clock: FakeKafka(world, spec))
    with Lading(tmp_path / "home", resolver=lambda host: ("93.184.216.34",)) as lading:
        lading.sql(
            """CREATE DATABASE shop; CREATE DATABASE hr; USE shop; CREATE TABLE orders (id BIGINT) USING delta;
            CREATE USER ann; GRANT LOAD ON shop.orders TO ann; GRANT ADMIN ON hr TO ann"""
        )
        yield lading


@pytest.mark.parametrize("more", ["", f", {EMPTY_AWS}", f', {EMPTY_AWS}, "aws.role_arn"="arn:aws:iam::1:role/x"'])
def test_empty_keys_do_not_sign_as_the_service_for_a_broker(home: Lading, more: str) -> None:
    with pytest.raises(LadingError) as caught:
        home.session("ann", "shop").sql(
            f'CREATE ROUTINE LOAD shop.a ON orders PROPERTIES("format"="json") FROM KAFKA({MSK}{more})'
        )
    assert isinstance(caught.value, DeniedError) or "aws.access_key" in str(caught.value)
    assert home.store.list_jobs() == []


EMPTY_S3 = ["'s3.access_key'='', 's3.secret_key'=''", f"'s3.access_key'='', 's3.secret_key'='{secret('half')}'"]


@pytest.mark.parametrize("keys", EMPTY_S3)
def test_empty_keys_do_not_sign_as_the_service_for_a_table(home: Lading, keys: str) -> None:
    text = (
        "CREATE TABLE hr.t (id BIGINT) USING {} LOCATION 's3://victim/place' TBLPROPERTIES({}, 's3.region'='eu-west-1')"
    )
    for form in ("delta", "iceberg"):
        with pytest.raises(DeniedError, match="IDENTITY"):
            home.session("ann", "hr").sql(text.format(form, keys))
        with pytest.raises(LadingError, match="go together, and neither is empty"):
            home.sql(text.format(form, keys))


def test_another_port_of_a_host_that_somebody_else_named_is_another_place(home: Lading) -> None:
    def source(endpoint: str) -> SourceFunction:
        return SourceFunction(name="S3", properties={"uri": "s3://b/x/*.json", "s3.endpoint": endpoint, **KEYS})

    ann, before = home.session("ann", "shop"), source("http://127.0.0.1:9000")
    ann.rights = home.access.rights(ann.identity)
    check_source(ann, source("http://127.0.0.1:9000"), before)
    for other in ("http://127.0.0.1:9001", "https://127.0.0.1:9000", "http://127.0.0.1"):
        with pytest.raises(DeniedError, match="private network"):
            check_source(ann, source(other), before)


def test_a_dot_in_a_name_cannot_make_two_tables_one(home: Lading) -> None:
    for text in ("CREATE DATABASE `sales.eu`", "CREATE TABLE hr.`a.b` (id BIGINT) USING delta"):
        with pytest.raises(SqlError, match="cannot be the name of a"):
            home.sql(text)


def test_a_mysql_login_that_has_ended_answers_and_kills_nothing(tmp_path: Path) -> None:
    first, second, third = (f"{secret(name)} Aa1" for name in ("first", "second", "third"))
    with (
        Lading(tmp_path / "home") as lading,
        MysqlServer(
            lading,
            authenticator=MysqlUsers(with_root(lading.access)),
            options=MysqlOptions(port=0, close_grace_s=2),
        ) as server,
    ):
        root = _connect(server, "root", ROOT_PASSWORD)
        _ask(root, "CREATE DATABASE hr")
        _ask(root, "CREATE TABLE hr.plan (id bigint) USING delta")
        _ask(root, f"CREATE USER ann IDENTIFIED BY '{first}'")
        _ask(root, "GRANT SELECT ON hr.* TO ann")
        stolen = _connect(server, "ann", first)
        assert _ask(stolen, "SELECT table_name FROM information_schema.tables WHERE table_schema='hr'")
        _ask(root, f"ALTER USER ann IDENTIFIED BY '{second}'")
        old = _connect(server, "ann", second)
        _refused(stolen)
        _ask(root, "DROP USER ann")
        _ask(root, f"CREATE USER ann IDENTIFIED BY '{third}'")
        _ask(root, "GRANT SELECT ON hr.* TO ann")
        new = _connect(server, "ann", third)
        _refused(old, f"KILL {new.thread_id()}", "SHOW PROCESSLIST", "SHOW FULL TABLES FROM hr")
        with pytest.raises(pymysql.MySQLError):
            old.kill(new.thread_id())
        assert _ask(new, "SHOW DATABASES")
        for connection in (root, stolen, old, new):
            connection.close()


def _connect(server: MysqlServer, user: str, password: str) -> pymysql.Connection[pymysql.cursors.Cursor]:
    return pymysql.connect(host="127.0.0.1", port=server.port, user=user, password=password)


def _ask(connection: pymysql.Connection[pymysql.cursors.Cursor], text: str) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(text)
        return list(cursor.fetchall())


def _refused(connection: pymysql.Connection[pymysql.cursors.Cursor], *texts: str) -> None:
    for text in (*texts, "SELECT table_name FROM information_schema.tables"):
        with pytest.raises(pymysql.MySQLError, match="has ended"):
            _ask(connection, text)


def test_a_header_with_a_name_of_lading_is_refused_with_what_to_do(home: Lading, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,__note\n1,x\n")
    source = f'FROM FILE("uri"="{tmp_path}/*.csv", "format"="csv_with_names", "column_separator"=",")'
    with pytest.raises(ConfigError, match="'__note', a name that Lading itself uses"):
        home.sql(f"CREATE JOB j ON STREAMING DO INSERT INTO shop.orders SELECT id {source}")
    assert home.store.list_jobs() == []
