"""Who may run what. Checked where statements are run, so it holds for every face."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lading.errors import ConfigError, ConflictError, DeniedError, JobNotFoundError, SqlError, TableNotFoundError
from lading.service.facade import Lading
from lading.service.session import Session
from lading.storage import homes
from lading.storage.local import LocalStore
from lading.store.home import LOCK_NAME
from lading.testing.marked import secret

PASSWORD = secret("long-enough")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Lading]:
    (tmp_path / "in").mkdir()
    with Lading(tmp_path / "home", allow_private_endpoints="127.0.0.1") as lading:
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
    home.sql("GRANT LOAD ON hr TO bob")
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
        "REPLAY ERRORS FOR j",
        "EXPLAIN REPLAY ERRORS FOR j",
    ):
        with pytest.raises(JobNotFoundError) as hidden:
            bob.sql(text)
        with pytest.raises(JobNotFoundError) as missing:
            bob.sql(re.sub(r"\bj\b", "nosuch", text))
        assert str(hidden.value).replace(" j.", " nosuch.") == str(missing.value)
    bob.sql("DROP JOB IF EXISTS WHERE jobName='j'")
    assert rows(ann, 'SELECT Name FROM jobs("type"="insert")') == [("j",)]
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
    with pytest.raises(JobNotFoundError):
        bob.sql("PAUSE JOB WHERE jobName='j'")
    home.sql("GRANT LOAD ON shop TO bob")
    bob.sql("PAUSE JOB WHERE jobName='j'")
    home.sql("REVOKE LOAD ON shop FROM bob")
    with pytest.raises(JobNotFoundError):
        bob.sql("RESUME JOB WHERE jobName='j'")


# The disk of the service.


def file_job(uri: object, name: str = "k") -> str:
    return f'CREATE JOB {name} ON STREAMING DO INSERT INTO orders SELECT id FROM FILE("uri"="{uri}", "format"="json")'


@pytest.fixture
def inner(home: Lading, tmp_path: Path) -> Path:
    place = tmp_path / "home" / "service.json"
    place.write_text('{"id": 1, "token": "of root"}\n')
    return place


def test_files_of_the_machine_are_for_admins_of_everything(home: Lading, tmp_path: Path) -> None:
    ann = home.session("ann", "shop")
    for text in (
        file_job(f"{tmp_path}/in/*.json"),
        file_job(f"file://{tmp_path}/in/*.json"),
        file_job("in/*.json"),
        f'ALTER JOB j INSERT INTO orders SELECT id + 1 FROM FILE("uri"="{tmp_path}/in/*.json", "format"="json")',
        f'EXPLAIN ALTER JOB j INSERT INTO orders SELECT 1 FROM FILE("uri"="{tmp_path}/in/*.json", "format"="json")',
    ):
        with pytest.raises(DeniedError, match=r"ADMIN command denied to user 'ann' for '\*\.\*'"):
            ann.sql(text)
    home.sql("GRANT ADMIN ON *.* TO ann")
    ann.sql(file_job(f"{tmp_path}/in/*.json"))


def test_no_file_of_the_home_is_ever_a_source(home: Lading, inner: Path, tmp_path: Path) -> None:
    (tmp_path / "in" / "linked.json").symlink_to(inner)
    (tmp_path / "around").symlink_to(tmp_path / "home")
    for uri in (
        inner,
        f"file://{inner}",
        f"file://{tmp_path}/home/serv%69ce.json",
        f"{tmp_path}/home/not-yet-there.json",
        f"{tmp_path}/home/quarantine/**",
        f"{tmp_path}/in/*.json",
        f"{tmp_path}/around/service.json",
        f"{tmp_path}/*/service.json",
        f"{tmp_path}/**.json",
        f"{tmp_path}/{{home,in}}/s*.json",
        f"{tmp_path}/[h]ome/service.json",
    ):
        with pytest.raises(ConfigError, match=r"belongs to Lading itself.*home folder"):
            home.sql(file_job(uri))
    assert [row[0] for row in home.sql('SELECT Name FROM jobs("type"="insert")')[-1].rows] == ["j"]


def test_a_file_that_leads_into_the_home_later_is_not_read(home: Lading, inner: Path, tmp_path: Path) -> None:
    home.sql(file_job(f"{tmp_path}/in/new/*.json").replace("/new/", "/"))
    compiled, _ = home.compile(home.job("k"))
    (tmp_path / "in" / "a.json").symlink_to(inner)
    with pytest.raises(ConfigError, match="belongs to Lading itself"):
        compiled.source.driver.open("")
    facts = inner.stat()
    etag = f"{facts.st_size}-{facts.st_mtime_ns:x}-{facts.st_ino:x}"
    with pytest.raises(ConfigError, match="belongs to Lading itself"):
        LocalStore().open(str(tmp_path / "in" / "a.json"), if_match=etag, size=facts.st_size)


def test_homes_are_known_by_their_lock() -> None:
    assert homes.LOCK_NAME == LOCK_NAME


# Places of tables.


def test_places_on_the_disk_are_for_admins_of_everything(home: Lading, tmp_path: Path) -> None:
    home.sql("GRANT ADMIN ON shop TO ann")
    ann = home.session("ann", "shop")
    for place in (f"{tmp_path}/elsewhere", f"file://{tmp_path}/elsewhere", f"{tmp_path}/home/warehouse/shop/t"):
        with pytest.raises(DeniedError, match=r"ADMIN command denied to user 'ann' for '\*\.\*'"):
            ann.sql(f"CREATE TABLE t (id BIGINT) USING delta LOCATION '{place}'")
    ann.sql("CREATE TABLE t (id BIGINT) USING delta")


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_a_table_cannot_be_among_the_files_of_others(home: Lading, tmp_path: Path, form: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "home" / "warehouse")
    for place in (
        f"{tmp_path}/home/warehouse/hr",
        f"{tmp_path}/home/warehouse/hr/wages",
        f"{tmp_path}/home/warehouse/hr/../hr",
        f"file://{tmp_path}/home/warehouse/%68r",
        f"{tmp_path}/link/hr",
        f"{tmp_path}/home",
        f"{tmp_path}",
    ):
        with pytest.raises(ConfigError, match="A table cannot be at"):
            home.sql(f"CREATE TABLE t (id BIGINT) USING {form} LOCATION '{place}'")
    home.sql(f"CREATE TABLE t (id BIGINT) USING {form} LOCATION '{tmp_path}/home/warehouse/shop/t'")


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_drop_deletes_the_tables_own_place_and_no_other(home: Lading, tmp_path: Path, form: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    home.sql(
        f"CREATE TABLE t (id BIGINT) USING {form} LOCATION '{tmp_path}/home/warehouse/../../outside'; DROP TABLE t"
    )
    assert (outside / "precious").exists()
    home.sql(f"CREATE TABLE t (id BIGINT) USING {form}")
    assert (tmp_path / "home/warehouse/shop/t").exists()
    home.sql("DROP TABLE t")
    assert not (tmp_path / "home/warehouse/shop/t").exists()
    assert (tmp_path / "home/warehouse/hr/wages").exists()


def test_drop_of_a_table_that_an_older_version_put_among_others_leaves_them(home: Lading, tmp_path: Path) -> None:
    entry = home.store.find_table("hr", "wages")
    assert entry is not None
    home.store.create_table(replace(entry, database="shop", name="t", location=f"{tmp_path}/home/warehouse/hr"))
    home.sql("DROP TABLE shop.t")
    assert (tmp_path / "home/warehouse/hr/wages").exists()


# A kill between the files of a table and its name.

COLUMNS = "id BIGINT NOT NULL, small TINYINT, city VARCHAR(10), day DATE"


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_create_table_can_be_repeated_after_a_kill(home: Lading, form: str) -> None:
    text = f"CREATE TABLE t ({COLUMNS}) USING {form} PARTITIONED BY (day)"
    home.sql(text)
    home.store.drop_table("shop", "t")
    for other in (text.replace("BIGINT", "INT"), text.replace(" PARTITIONED BY (day)", "")):
        with pytest.raises(ConflictError):
            home.sql(other)
    home.sql(text)
    assert rows(home.session("root", "shop"), "DESCRIBE t")[0] == ("id", "bigint", "No")


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_a_table_with_a_history_is_never_taken_for_the_rest_of_a_kill(home: Lading, tmp_path: Path, form: str) -> None:
    (tmp_path / "in" / "a.json").write_text("")
    text = f"CREATE TABLE t (id BIGINT) USING {form}"
    home.sql(text)
    home.sql(
        f'CREATE JOB k ON STREAMING DO INSERT INTO t SELECT id FROM FILE("uri"="{tmp_path}/in/*.json", "format"="json")'
    )
    home.coordinator(home.job("k"))[1].close()  # The opening bill is the first commit after the making.
    home.sql("DROP JOB WHERE jobName='k'")
    home.store.drop_table("shop", "t")
    with pytest.raises(ConflictError):
        home.sql(text)


# The database that a client begins in.


def test_a_face_chooses_a_database_as_use_does(home: Lading) -> None:
    ann = home.session("ann")
    ann.use("default")
    ann.use("shop")
    assert ann.database == "shop"
    with pytest.raises(DeniedError, match="'hr'"):
        ann.use("hr")
    assert ann.database == "shop"
    with pytest.raises(TableNotFoundError, match="Unknown database 'nowhere'"):
        home.session("root").use("nowhere")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("plugin.library.paths", "/tmp/evil.so"),
        ("sasl.kerberos.kinit.cmd", "touch /tmp/pwned"),
        ("sasl.kerberos.principal", "x; touch /tmp/pwned"),
        ("ssl.engine.location", "/tmp/evil.so"),
        ("ssl.providers", "evil"),
        ("offset.store.path", "/tmp"),
        ("oauth_cb", "x"),
        ("ssl.key.location", "{home}/secret.key"),
        ("sasl.oauthbearer.assertion.private.key.file", "{home}/secret.key"),
        ("schema.registry.ssl.key.location", "{home}/secret.key"),
    ],
)
def test_a_routine_load_cannot_have_the_machine_do_more_than_read(
    home: Lading, tmp_path: Path, name: str, value: str
) -> None:
    given = value.replace("{home}", str(tmp_path / "home"))
    text = (
        'CREATE ROUTINE LOAD r ON orders COLUMNS(id) PROPERTIES("format"="avro") FROM KAFKA('
        f'"kafka_broker_list"="127.0.0.1:1", "kafka_topic"="t", "property.schema.registry.url"="http://127.0.0.1:1",'
        f' "property.{name}"="{given}")'
    )
    with pytest.raises((SqlError, DeniedError), match=rf"property\.{name}"):
        home.session("ann", "shop").sql(text)
    with pytest.raises((SqlError, ConfigError), match=name.removeprefix("schema.registry.")):
        home.session("root", "shop").sql(text)


@pytest.mark.parametrize(
    "mapping",
    [
        "'${env:LADING_SECRET_KEY}'",
        "`${env:LADING_SECRET_KEY}`",
        "extract(`year from now()) + length(reflect('java.lang.System', 'getenv', 'X')) + extract(year` from now())",
        "from_xml(id, 'a INT', map('rowValidationXSDPath', '/etc/passwd'))",
    ],
)
def test_a_mapping_cannot_reach_what_is_the_services_own(home: Lading, tmp_path: Path, mapping: str) -> None:
    with pytest.raises(SqlError):
        home.sql(file_job(f"{tmp_path}/in/*.json").replace("SELECT id", f"SELECT {mapping}"))
    with pytest.raises(SqlError):
        home.session("ann", "shop").sql(
            f'CREATE ROUTINE LOAD r ON orders COLUMNS(x, id = {mapping}) PROPERTIES("format"="json") FROM KAFKA('
            '"kafka_broker_list"="127.0.0.1:1", "kafka_topic"="t")'
        )
