"""Keys that a REST catalog lends for the files of a table: used by driver and writers, renewed, never shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyspark.sql import SparkSession

from lading.testing.marked import MARK, secret
from tests.service.conftest import Desk
from tests.service.test_rollbacks import LocalDesk
from tests.support.maven import JarsMissingError
from tests.support.rest_catalog import Front, RestServer, serve_rest
from tests.tables.s3_server import S3Server, SignedRequest, serve_s3

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("city", pa.string()), ("amount", pa.decimal128(10, 2))]
)

OWNER = "owner"
"""The key of the catalog server itself, which writes it into its own log."""


@pytest.fixture(scope="module")
def store() -> Iterator[S3Server]:
    with serve_s3() as server:
        yield server


@pytest.fixture(scope="module")
def rest(store: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestServer]:
    settings = {
        "warehouse": f"s3://{store.make_bucket()}/lake",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "client.region": "us-east-1",
        **owner(store),
    }
    try:
        with serve_rest(tmp_path_factory.mktemp("rest"), settings) as server:
            yield server
    except JarsMissingError as error:
        pytest.skip(str(error))


def owner(store: S3Server) -> dict[str, str]:
    return {
        "s3.endpoint": store.endpoint,
        "s3.path-style-access": "true",
        "s3.access-key-id": OWNER,
        "s3.secret-access-key": OWNER,
    }


def lent(name: str) -> dict[str, str]:
    return {
        "s3.access-key-id": secret(name),
        "s3.secret-access-key": secret(f"{name}-s"),
        "s3.session-token": secret(f"{name}-t"),
    }


def of_lading(store: S3Server) -> list[SignedRequest]:
    return [each for each in store.requests() if each.access_key != OWNER]


@pytest.fixture(params=["local", "spark"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    is_local = request.param == "local"
    made = LocalDesk(tmp_path) if is_local else Desk(tmp_path, request.getfixturevalue("spark"))
    yield made
    made.lading.close()


@pytest.mark.java
def test_each_batch_has_the_keys_of_then(
    desk: Desk, rest: RestServer, store: S3Server, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    space = request.node.callspec.id
    theirs = RestCatalog("theirs", uri=rest.url, **{"s3.region": "us-east-1", **owner(store)})
    theirs.create_namespace(space)
    theirs.create_table(f"{space}.orders", SCHEMA)
    front = Front(rest)
    front.config = lent(f"{space}1")
    desk.sql(
        f'CREATE CATALOG lake PROPERTIES ("type"="iceberg", "iceberg.catalog.type"="rest", "uri"="{front.url}", '
        f'"iceberg.rest.vended-credentials-enabled"="true", "s3.endpoint"="{store.endpoint}", '
        '"s3.region"="us-east-1", "use_path_style"="true")'
    )
    store.requests()
    desk.put_orders("a.csv", 0, 20)
    desk.create(target=f"lake.{space}.orders")
    desk.run()
    check_signed(of_lading(store), f"{space}1")
    store.refuse(secret(f"{space}1"))
    front.config = lent(f"{space}2")
    desk.put_orders("b.csv", 20, 20)
    desk.run()
    assert desk.show("Status") == "RUNNING", desk.show("ErrorMsg")
    check_signed([each for each in of_lading(store) if each.access_key != secret(f"{space}1")], f"{space}2")
    rows = theirs.load_table(f"{space}.orders").scan().to_arrow()
    assert sorted(rows["id"].to_pylist()) == list(range(40))
    assert set(front.delegations) == {"vended-credentials"}
    shown = [desk.sql(text) for text in ("SHOW CREATE CATALOG lake", "SHOW CREATE JOB j", "SHOW CATALOGS")]
    assert MARK not in f"{shown}{caplog.text}"
    if space == "spark":
        spark: SparkSession = request.getfixturevalue("spark")
        assert MARK not in str(spark.sparkContext.getConf().getAll())
    front.shutdown()
    front.server_close()


def check_signed(seen: list[SignedRequest], name: str) -> None:
    """Files of rows are put by writers, bills and manifests by the driver; all with the key that was lent then."""
    signed = {(each.access_key, each.session_token) for each in seen}
    assert signed == {(secret(name), secret(f"{name}-t"))}
    put = [each.path for each in seen if each.method in ("PUT", "POST")]
    for part in ("/data/", "/_lading/", "/metadata/"):
        assert any(part in path for path in put), (part, put)
