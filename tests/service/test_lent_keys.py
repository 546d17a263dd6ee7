"""Keys that a REST catalog lends for the files of a table: used by driver and writers, renewed, never shown."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import RESTError
from pyspark.sql import SparkSession

from lading.clock import Clock, SystemClock
from lading.errors import StorageError
from lading.model.catalog import CatalogAccess, CatalogKind
from lading.model.s3_access import S3Access
from lading.storage.lent_files import PART_BYTES, PartedUpload
from lading.storage.renewed import RenewedStore
from lading.storage.store import open_store
from lading.tables.iceberg.file_io_properties import FILE_IO
from lading.tables.iceberg.rest import GuardedRest
from lading.testing.clock import ManualClock
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


@pytest.mark.java
def test_a_batch_that_is_longer_than_its_keys_is_finished_with_others(
    desk: Desk, rest: RestServer, store: S3Server, request: pytest.FixtureRequest
) -> None:
    space = f"long_{request.node.callspec.id}"
    front = lending_front(desk, rest, store, space)
    names = [f"{space}{number}" for number in range(10)]
    front.lends = lambda: lent(next(name for name in names if not store.has_ended(secret(name))))
    # Files of five cities are written by one task, and no key but the last outlives one of them.
    for name in names[:-1]:
        store.refuse_after(secret(name), path=f"/{space}/orders/data/")
    desk.create(target=f"lake.{space}.orders")
    desk.put("a.csv", [f"{order},city{order % 5},1.50" for order in range(20)])
    store.requests()
    desk.run()
    assert desk.show("Status") == "RUNNING", desk.show("ErrorMsg")
    put = [each for each in of_lading(store) if each.method == "PUT" and "/data/" in each.path]
    assert len({each.path for each in put}) == 5, "in one attempt"
    assert len({each.access_key for each in put}) == 5
    rows = theirs(rest, store).load_table(f"{space}.orders").scan().to_arrow()
    assert sorted(rows["id"].to_pylist()) == list(range(20))
    front.shutdown()
    front.server_close()


def ends_in(clock: Clock, seconds: float) -> dict[str, str]:
    return {"s3.session-token-expires-at-ms": str(int((clock.now().timestamp() + seconds) * 1000))}


def opened(front: Front, store: S3Server, clock: Clock) -> GuardedRest:
    access = CatalogAccess(
        name="lake",
        kind=CatalogKind.REST,
        properties={"uri": front.url, "py-io-impl": FILE_IO},
        storage=S3Access(endpoint=store.endpoint, region="us-east-1", path_style=True, within="s3://"),
        lends_keys=True,
    )
    return GuardedRest(access, clock)


@pytest.mark.java
@pytest.mark.parametrize(("lasts_s", "still_s", "ended_s"), [(3600, 3290, 3301), (60, 29, 31), (None, 590, 610)])
def test_keys_are_asked_for_again_by_the_clock(
    rest: RestServer, store: S3Server, lasts_s: int | None, still_s: float, ended_s: float
) -> None:
    """Five minutes before their end, or at half of a short life, or after ten minutes when they do not say."""
    space = f"clock_{lasts_s}"
    theirs(rest, store).create_namespace(space)
    theirs(rest, store).create_table(f"{space}.orders", SCHEMA)
    front, clock = Front(rest), ManualClock()
    first = lent("clock1") | (ends_in(clock, lasts_s) if lasts_s else {})
    front.config = first
    catalog = opened(front, store, clock)
    catalog.load_table(f"{space}.orders")
    front.config = lent("clock2") | ends_in(clock, ended_s + 7200)
    clock.sleep(still_s)
    assert catalog.fresh().access_key == secret("clock1")
    # A catalog that is away takes nothing from keys that are still good.
    clock.sleep(ended_s - still_s)
    front.token = secret("nobody has it")
    if lasts_s:
        assert catalog.fresh().access_key == secret("clock1")
        clock.sleep(lasts_s - ended_s)
        with pytest.raises(RESTError):
            catalog.fresh()
        clock.sleep(ended_s - lasts_s)
    front.token = ""
    assert catalog.fresh().access_key == secret("clock2")
    looks = len(front.delegations)
    assert catalog.fresh().access_key == secret("clock2")
    assert len(front.delegations) == looks
    front.shutdown()
    front.server_close()


@pytest.mark.java
def test_a_large_file_outlives_the_keys_it_was_begun_with_in_another_process(rest: RestServer, store: S3Server) -> None:
    space, clock = "large", SystemClock()
    theirs(rest, store).create_namespace(space)
    bucket_path = theirs(rest, store).create_table(f"{space}.orders", SCHEMA).location().removeprefix("s3://")
    front = Front(rest)
    front.config = lent("large1") | ends_in(clock, 7200)
    catalog = opened(front, store, clock)
    catalog.load_table(f"{space}.orders")
    sealed = pickle.dumps(catalog.keys_of(f"{space}.orders"))
    looks = len(front.delegations)
    keys = pickle.loads(sealed)
    part = b"x" * PART_BYTES
    with PartedUpload(f"{bucket_path}/data/large.bin", keys) as upload:
        upload.write(part)
        assert len(front.delegations) == looks, "keys that are good are not asked for again"
        store.refuse(secret("large1"))
        front.config = lent("large2") | ends_in(clock, 7200)
        upload.write(part + b"end")
        assert upload.tell() == 2 * PART_BYTES + 3
    bucket, _, place = bucket_path.partition("/")
    found = open_store(f"s3://{bucket}/{place}", keys()).get("data/large.bin")
    assert found == part + part + b"end"
    assert keys().access_key == secret("large2")
    # No key helps any more: an error, and no part of a file.
    store.refuse(secret("large2"))
    failing = PartedUpload(f"{bucket_path}/data/none.bin", keys)
    with pytest.raises(StorageError, match="ExpiredToken"):
        failing.write(part)
    with suppress(StorageError):
        failing.close()
    front.config = lent("large3")
    assert RenewedStore(partial(open_store, f"s3://{bucket}/{place}"), keys).sizes(["data/none.bin"]) == [None]
    front.shutdown()
    front.server_close()


def theirs(rest: RestServer, store: S3Server) -> RestCatalog:
    return RestCatalog("theirs", uri=rest.url, **{"s3.region": "us-east-1", **owner(store)})


def lending_front(desk: Desk, rest: RestServer, store: S3Server, space: str) -> Front:
    """A table of others, partitioned by city, and a catalog of Lading that lends keys for it."""
    catalog = theirs(rest, store)
    catalog.create_namespace(space)
    with catalog.create_table(f"{space}.orders", SCHEMA).update_spec() as spec:
        spec.add_identity("city")
    front = Front(rest)
    front.config = lent(f"{space}0")
    desk.sql(
        f'CREATE CATALOG lake PROPERTIES ("type"="iceberg", "iceberg.catalog.type"="rest", "uri"="{front.url}", '
        f'"iceberg.rest.vended-credentials-enabled"="true", "s3.endpoint"="{store.endpoint}", '
        '"s3.region"="us-east-1", "use_path_style"="true")'
    )
    return front


def check_signed(seen: list[SignedRequest], name: str) -> None:
    """Files of rows are put by writers, bills and manifests by the driver; all with the key that was lent then."""
    signed = {(each.access_key, each.session_token) for each in seen}
    assert signed == {(secret(name), secret(f"{name}-t"))}
    put = [each.path for each in seen if each.method in ("PUT", "POST")]
    for part in ("/data/", "/_lading/", "/metadata/"):
        assert any(part in path for path in put), (part, put)
