"""Catalogs by statements, without Spark: a JDBC catalog in PostgreSQL, which needs no server on Java."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import OAuthError

from lading.errors import (
    ConfigError,
    ConflictError,
    NotFoundError,
    SqlError,
    StorageError,
    TableError,
    TableNotFoundError,
)
from lading.tables.iceberg.errors import in_our_words
from lading.testing.marked import secret
from tests.service.conftest import Desk
from tests.service.test_rollbacks import LocalDesk
from tests.store.postgres import PostgresServer
from tests.tables.s3_server import S3Server

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("city", pa.string()), ("amount", pa.decimal128(10, 2))]
)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = LocalDesk(tmp_path)
    yield made
    made.lading.close()


@pytest.fixture
def uri(postgres: PostgresServer) -> str:
    return postgres.new_database()


@pytest.fixture
def theirs(uri: str, tmp_path: Path) -> Iterator[SqlCatalog]:
    """The catalog as others use it."""
    catalog = SqlCatalog(
        "lake", uri=uri.replace("postgresql://", "postgresql+psycopg://"), warehouse=f"file://{tmp_path}/lake"
    )
    catalog.create_namespace("sales")
    catalog.create_table("sales.orders", SCHEMA, properties={"owner": "them"})
    yield catalog
    catalog.close()


def properties(uri: str, tmp_path: Path) -> str:
    return (
        f'PROPERTIES ("type" = "iceberg", "iceberg.catalog.type" = "jdbc", "uri" = "{uri}", '
        f'"warehouse" = "file://{tmp_path}/lake")'
    )


def test_a_job_that_makes_its_table_there_is_tried_and_makes_nothing(
    desk: Desk, theirs: SqlCatalog, uri: str, tmp_path: Path
) -> None:
    desk.sql(f"CREATE CATALOG lake {properties(uri, tmp_path)}")
    desk.put("a.csv", ["1,essen,1.50", "2,ulm,x"])
    text = (
        "CREATE JOB j ON STREAMING DO CREATE TABLE IF NOT EXISTS lake.sales.new (id BIGINT, amount DECIMAL(10,2)) "
        "USING {} INSERT INTO lake.sales.new SELECT id, amount "
        f'FROM FILE("uri"="{desk.inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")'
    )
    told = {str(what): str(how) for what, how in desk.sql(f"EXPLAIN {text.format('iceberg')}")}
    assert told["table"].startswith("CREATE TABLE IF NOT EXISTS lake.sales.new (")
    assert (told["loaded"], told["bad"]) == ("1", "1")
    with pytest.raises(ConfigError, match="cannot have USING delta"):
        desk.sql(f"EXPLAIN {text.format('delta')}")
    assert theirs.list_tables("sales") == [("sales", "orders")]
    assert not (tmp_path / "lake" / "sales" / "new").exists()


def test_a_catalog_is_made_shown_changed_and_dropped(desk: Desk, theirs: SqlCatalog, uri: str, tmp_path: Path) -> None:
    said = f"CREATE CATALOG lake COMMENT 'theirs' {properties(uri, tmp_path)}"
    desk.sql(said)
    with pytest.raises(ConflictError, match="exists already"):
        desk.sql(said)
    desk.sql(said.replace("CATALOG lake", "CATALOG IF NOT EXISTS lake"))
    rows = desk.sql("SHOW CATALOGS")
    assert [(row[0], row[1], row[2], row[3], row[6]) for row in rows] == [
        ("0", "internal", "internal", "yes", "The tables of this installation"),
        ("1", "lake", "iceberg", "", "theirs"),
    ]
    assert desk.sql("SHOW DATABASES FROM lake") == [("sales",)]
    assert desk.sql("SHOW TABLES FROM lake.sales") == [("orders",)]
    desk.sql("SWITCH lake")
    assert [row[1] for row in desk.sql("SHOW CATALOGS") if row[3] == "yes"] == ["lake"]
    assert desk.sql("SHOW DATABASES") == [("sales",)]
    with pytest.raises(TableNotFoundError, match="No database of catalog lake"):
        desk.sql("SHOW TABLES")
    assert [row[0] for row in desk.sql("DESCRIBE sales.orders")] == ["id", "city", "amount"]
    desk.sql("USE sales")
    assert [row[0] for row in desk.sql("DESCRIBE orders")] == ["id", "city", "amount"]
    assert [row[0] for row in desk.sql("DESCRIBE lake.sales.orders")] == ["id", "city", "amount"]
    desk.sql("USE internal.shop")
    assert desk.sql("SHOW TABLES") == []
    desk.sql("ALTER CATALOG lake MODIFY COMMENT 'ours'; ALTER CATALOG lake RENAME pond; REFRESH CATALOG pond")
    # The name of a JDBC catalog is in its rows: under another name it shows other tables.
    assert desk.sql("SHOW DATABASES FROM pond") == []
    desk.sql('ALTER CATALOG pond SET PROPERTIES ("iceberg.jdbc.catalog_name" = "lake")')
    assert desk.sql("SHOW DATABASES FROM pond") == [("sales",)]
    desk.sql("DROP CATALOG pond; DROP CATALOG IF EXISTS pond")
    with pytest.raises(NotFoundError, match="Unknown catalog 'pond'"):
        desk.sql("SHOW TABLES FROM pond.sales")
    assert theirs.list_tables("sales") == [("sales", "orders")]


def test_what_it_shows_runs_again_and_shows_no_secret(desk: Desk, postgres: PostgresServer, tmp_path: Path) -> None:
    password = secret("database")
    uri = postgres.new_database()
    with pytest.raises(TableError, match='role "nobody" does not exist') as caught:
        desk.sql(
            f'CREATE CATALOG lake {properties(uri, tmp_path)[:-1]}, "iceberg.jdbc.user" = "nobody", '
            f'"iceberg.jdbc.password" = "{password}")'
        )
    assert password not in str(caught.value)
    assert len(desk.sql("SHOW CATALOGS")) == 1
    desk.sql(
        f'CREATE CATALOG lake {properties(uri, tmp_path)[:-1]}, "s3.access_key" = "{secret("key")}", '
        f'"s3.secret_key" = "{secret("other")}")'
    )
    ((_, text),) = desk.sql("SHOW CREATE CATALOG lake")
    assert secret("key") not in str(text)
    assert '"s3.access_key" = "******"' in str(text)
    desk.restart()
    assert desk.sql("SHOW DATABASES FROM lake") == []
    desk.sql("DROP CATALOG lake")
    with pytest.raises(SqlError, match="what is shown instead"):
        desk.sql(str(text))
    desk.sql(str(text).replace('"******"', f'"{secret("key")}"'))
    assert desk.sql("SHOW DATABASES FROM lake") == []


def test_references_are_shown_so_that_the_text_runs_again(
    desk: Desk, postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = postgres.new_database()
    monkeypatch.setenv("LAKE_KEY", secret("key"))
    kept = tmp_path / "lake.secret"
    kept.write_text("sesame")
    kept.chmod(0o600)
    said = (
        f'CREATE CATALOG lake {properties(uri, tmp_path)[:-1]}, "s3.access_key" = "env:LAKE_KEY", '
        f'"s3.secret_key" = "file:{kept}")'
    )
    desk.sql(said)
    ((_, text),) = desk.sql("SHOW CREATE CATALOG lake")
    assert '"s3.access_key" = "env:LAKE_KEY"' in str(text)
    assert f'"s3.secret_key" = "file:{kept}"' in str(text)
    desk.sql("DROP CATALOG lake")
    desk.sql(str(text))
    ((_, again),) = desk.sql("SHOW CREATE CATALOG lake")
    assert again == text
    storage = desk.lading.catalog.external.access("lake").storage
    assert (storage.access_key, storage.secret_key) == (secret("key"), "sesame")
    # The reference is followed at each use.
    monkeypatch.setenv("LAKE_KEY", secret("another"))
    assert desk.lading.catalog.external.access("lake").storage.access_key == secret("another")


def test_databases_and_tables_are_made_and_dropped_in_it(
    desk: Desk, theirs: SqlCatalog, uri: str, tmp_path: Path
) -> None:
    desk.sql(f"CREATE CATALOG lake {properties(uri, tmp_path)}")
    desk.sql("CREATE DATABASE lake.web; CREATE DATABASE IF NOT EXISTS lake.web")
    desk.table("lake.web.visits", form="iceberg", more="PARTITIONED BY (city)")
    with pytest.raises(ConflictError):
        desk.table("lake.web.visits", form="iceberg")
    with pytest.raises(ConfigError, match="cannot have USING delta"):
        desk.table("lake.web.other", form="delta")
    made = theirs.load_table("web.visits")
    assert [field.name for field in made.spec().fields] == ["city"]
    place = Path(made.location().removeprefix("file://"))
    assert not (place / "_lading" / "table.json").exists()
    with pytest.raises(ConflictError, match="not empty"):
        desk.sql("DROP DATABASE lake.web")
    desk.sql("DROP TABLE lake.web.visits; DROP TABLE IF EXISTS lake.web.visits; DROP DATABASE lake.web")
    assert any((place / "metadata").iterdir())  # The name is gone, and nothing else.
    assert not theirs.namespace_exists("web")
    desk.sql("DROP TABLE lake.sales.orders PURGE")
    assert not theirs.table_exists("sales.orders")


def test_a_job_opens_in_a_table_that_was_there(desk: Desk, theirs: SqlCatalog, uri: str, tmp_path: Path) -> None:
    desk.sql(f"CREATE CATALOG lake {properties(uri, tmp_path)}")
    desk.put_orders("a.csv", 0, 3)
    desk.sql("CREATE TABLE orders (id BIGINT) USING iceberg")  # The same name in two catalogs.
    desk.create(target="lake.sales.orders")
    named = theirs.load_table("sales.orders").properties
    assert any(name.startswith("lading.head.") for name in named)
    assert named["owner"] == "them"
    ((_, text),) = [row[:2] for row in desk.sql("SHOW CREATE JOB j")]
    assert "INSERT INTO lake.sales.orders (id, city, amount)" in str(text)
    for statement in ("DROP CATALOG lake", "ALTER CATALOG lake RENAME pond"):
        with pytest.raises(ConfigError, match="is used by j"):
            desk.sql(statement)
    with pytest.raises(ConfigError, match="is loaded by j"):
        desk.sql("DROP TABLE lake.sales.orders PURGE")
    with pytest.raises(TableNotFoundError):
        desk.create("k", target="lake.sales.nothing")
    with pytest.raises(NotFoundError):
        desk.create("k", target="pond.sales.orders")
    desk.restart()
    assert desk.show("Status") in ("PENDING", "RUNNING")


def test_rows_are_loaded_into_a_table_of_a_jdbc_catalog(
    desk: Desk, theirs: SqlCatalog, uri: str, tmp_path: Path
) -> None:
    before = [{"id": -1, "city": "before", "amount": None}]
    theirs.load_table("sales.orders").append(pa.Table.from_pylist(before, schema=SCHEMA))
    desk.sql(f"CREATE CATALOG lake {properties(uri, tmp_path)}")
    desk.put_orders("a.csv", 0, 30)
    desk.create(target="lake.sales.orders")
    desk.run()
    # Somebody else writes in between, and is not written over.
    theirs.load_table("sales.orders").append(
        pa.Table.from_pylist([{**before[0], "id": -2, "city": "between"}], schema=SCHEMA)
    )
    desk.put_orders("b.csv", 30, 30)
    desk.restart()
    desk.run()
    place = theirs.load_table("sales.orders").metadata_location.removeprefix("file://")
    rows = pl.scan_iceberg(place).collect()
    assert sorted(rows["id"].to_list()) == [-2, -1, *range(60)], desk.show("ErrorMsg")
    assert rows.filter(pl.col("id") == 7)["amount"].to_list() == [Decimal("7.50")]
    assert desk.lading.verify("j").is_clean


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        ('"type" = "hms"', 'knows catalogs of "type" = "iceberg"'),
        ('"type" = "iceberg"', "iceberg.catalog.type is ''"),
        ('"type" = "iceberg", "iceberg.catalog.type" = "hadoop", "warehouse" = "/lake"', "of a Hadoop catalog"),
        ('"type" = "iceberg", "iceberg.catalog.type" = "hms"', "needs a uri"),
        ('"type" = "iceberg", "iceberg.catalog.type" = "rest"', "needs a uri"),
        ('"type" = "iceberg", "iceberg.catalog.type" = "rest", "uri" = "file:///etc"', "begins with http"),
        (
            '"type" = "iceberg", "iceberg.catalog.type" = "rest", "uri" = "http://h", "py-io-impl" = "x.Y"',
            "no property",
        ),
        ('"type" = "iceberg", "iceberg.catalog.type" = "glue", "uri" = "http://h"', "no property uri"),
        ('"type" = "iceberg", "iceberg.catalog.type" = "jdbc", "uri" = "jdbc:mysql://h/d"', "in PostgreSQL"),
        (
            '"type" = "iceberg", "iceberg.catalog.type" = "rest", "uri" = "http://h", '
            '"iceberg.rest.security.type" = "oauth2"',
            "no token is written",
        ),
        ('"type" = "iceberg", "iceberg.catalog.type" = "rest", "uri" = "http://169.254.169.254"', "always refused"),
    ],
)
def test_a_wrong_definition_is_refused_by_name(desk: Desk, more: str, wrong: str) -> None:
    with pytest.raises(SqlError, match=wrong):
        desk.sql(f"CREATE CATALOG lake PROPERTIES ({more})")
    assert len(desk.sql("SHOW CATALOGS")) == 1


def test_an_unreachable_catalog_is_not_made(desk: Desk) -> None:
    with pytest.raises(StorageError, match="catalog lake did not answer"):
        desk.sql(
            'CREATE CATALOG lake PROPERTIES ("type" = "iceberg", "iceberg.catalog.type" = "rest", '
            '"uri" = "http://127.0.0.1:9")'
        )
    assert len(desk.sql("SHOW CATALOGS")) == 1


def test_a_glue_catalog_with_keys_of_its_own(desk: Desk, s3: S3Server) -> None:
    bucket, keys = s3.make_bucket(), s3.options
    reach = (
        f'"s3.endpoint" = "{s3.endpoint}", "s3.region" = "us-east-1", "s3.access_key" = "{keys.access_key}", '
        f'"s3.secret_key" = "{keys.secret_key}", "use_path_style" = "true"'
    )
    desk.sql(
        'CREATE CATALOG glue PROPERTIES ("type" = "iceberg", "iceberg.catalog.type" = "glue", '
        f'"glue.endpoint" = "{s3.endpoint}", "glue.region" = "us-east-1", "glue.access_key" = "{keys.access_key}", '
        f'"glue.secret_key" = "{keys.secret_key}", "warehouse" = "s3://{bucket}/lake", {reach})'
    )
    desk.sql("CREATE DATABASE glue.sales")
    desk.table("glue.sales.orders", form="iceberg")
    assert desk.sql("SHOW TABLES FROM glue.sales") == [("orders",)]
    desk.put_orders("a.csv", 0, 3)
    desk.create(target="glue.sales.orders")
    lake = desk.lading.catalog.open_table("glue.sales", "orders")
    (job_id,) = lake.job_ids()
    head = lake.read_head(job_id)
    assert head is not None
    assert lake.location.startswith(f"s3://{bucket}/lake/")
    # Somebody else, with PyIceberg alone, finds the same table and its head.
    theirs = GlueCatalog(
        "theirs",
        **{
            "glue.endpoint": s3.endpoint,
            "glue.region": "us-east-1",
            "glue.access-key-id": keys.access_key,
            "glue.secret-access-key": keys.secret_key,
            "s3.endpoint": s3.endpoint,
            "s3.access-key-id": keys.access_key,
            "s3.secret-access-key": keys.secret_key,
            "s3.region": "us-east-1",
        },
    )
    assert f"lading.head.{job_id}" in theirs.load_table("sales.orders").properties
    desk.run()
    theirs.load_table("sales.orders").append(
        pa.Table.from_pylist([{"id": -1, "city": "between", "amount": None}], schema=SCHEMA)
    )
    desk.put_orders("b.csv", 3, 4)
    desk.run()
    rows = theirs.load_table("sales.orders").scan().to_arrow()
    assert sorted(rows["id"].to_pylist()) == [-1, *range(7)], desk.show("ErrorMsg")
    assert desk.lading.verify("j").is_clean


def test_what_glue_and_token_servers_say_is_told_in_plain_words() -> None:
    away = in_our_words("catalog g", EndpointConnectionError(endpoint_url="http://glue.example"))
    denied = in_our_words("catalog g", ClientError({"Error": {"Code": "AccessDeniedException"}}, "GetDatabases"))
    busy = in_our_words("catalog g", ClientError({"Error": {"Code": "ThrottlingException"}}, "GetDatabases"))
    refused = in_our_words("catalog r", OAuthError("invalid_client"))
    assert [type(each) for each in (away, denied, busy, refused)] == [
        StorageError,
        TableError,
        StorageError,
        TableError,
    ]
