"""Fixtures for all tests."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterator
from contextlib import ExitStack

import hypothesis
import pytest
from pyspark.sql import SparkSession

from lading.errors import ConfigError
from lading.pipeline.java import find_java
from lading.pipeline.session import open_session
from lading.testing.kinesis.server import KinesisServer, serve_kinesis
from lading.testing.marked import secret
from tests.cheap import make_cheap
from tests.guarded_s3 import GuardedStore, serve_guarded_s3
from tests.secret_leaks.buckets import look_at_buckets
from tests.secret_leaks.files import look_at_files
from tests.secret_leaks.hooks import watching
from tests.secret_leaks.watch import WATCH
from tests.servers import SPARK, allow_servers, mark_servers, take_refused
from tests.store.postgres import NoPostgresError, PostgresServer, serve_postgres
from tests.support.examples import examples
from tests.support.hive_metastore import NEW, OLD, RELEASES, Metastore, serve_metastore
from tests.support.jvm_engine import JvmEngine, serve_engine
from tests.support.kafka_broker import KafkaBroker, KafkaMissingError, serve_kafka
from tests.support.maven import JarsMissingError
from tests.support.rest_catalog import free_port
from tests.tables.s3_server import S3Server, serve_s3

# Tests write files and load them at once; tests of what happens to files that are still written say so themselves.
os.environ.setdefault("LADING_FILE_SETTLE_SECONDS", "0")
make_cheap()
# Where the machine does something else for a moment, a random test would fail that has found nothing.
hypothesis.settings.register_profile("lading", deadline=None, max_examples=examples(100))
hypothesis.settings.load_profile("lading")


@pytest.fixture(scope="session", autouse=True)
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Every test is heard by the watch for secrets. It begins first and ends last: then all files are looked at."""
    with watching(WATCH):
        yield
    look_at_files(tmp_path_factory.getbasetemp(), WATCH)
    _nothing_leaked()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks say which servers a test needs. With `pytest -n 2 --dist loadgroup` one process has Spark."""
    mark_servers(items)
    is_shared = getattr(config.option, "dist", "no") == "loadgroup" or getattr(config.option, "loadgroup", False)
    if not is_shared:
        return
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    # The long ones first, so that nobody waits for them at the end.
    items.sort(key=lambda item: (_group(item) != SPARK, "/crash/" not in item.nodeid))


def pytest_collection_finish() -> None:
    """Thousands of tests and their modules stay until the end: nobody has to look whether they are garbage."""
    gc.collect()
    gc.freeze()


def _group(item: pytest.Item) -> str:
    names = getattr(item, "fixturenames", ())
    return next((name for name in (SPARK, "jvm", "metastore") if name in names), item.nodeid.partition("::")[0])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    allow_servers(item)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown() -> Generator[None]:
    """A test in which a secret was shown fails, whatever it is about; so does one that needs a mark."""
    yield
    _nothing_leaked()
    if refused := take_refused():
        pytest.fail("\n".join(refused), pytrace=False)


def _nothing_leaked() -> None:
    if found := WATCH.take():
        pytest.fail("A secret was shown, or cannot be looked for:\n" + "\n".join(found), pytrace=False)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session for the whole run. What runs in the process of a test uses it, `lading run` too."""
    home = tmp_path_factory.mktemp("spark")
    (home / "events").mkdir()
    # With a log of all that Spark does, and secrets around it: neither its files nor its processes may show one.
    settings = {
        "spark.master": "local[2]",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{home}/events",
        "spark.eventLog.compress": "false",
    }
    variables = {**os.environ, "DB_PASSWORD": secret("variable"), "AWS_SECRET_ACCESS_KEY": secret("variable")}
    session = open_session(settings, find_java(os.environ, home), home, variables=variables)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """One S3-compatible store for the whole run."""
    with serve_s3() as server:
        yield server
        look_at_buckets(server, WATCH)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One PostgreSQL that listens at a port, for catalogs, for the whole run."""
    with ExitStack() as stack:
        try:
            running = stack.enter_context(serve_postgres(free_port()))
        except NoPostgresError as missing:
            pytest.skip(f"NOT PROVED, no PostgreSQL: {missing}")
        yield running


@pytest.fixture(scope="session")
def guarded() -> Iterator[GuardedStore]:
    """One store that looks at keys and roles for the whole run."""
    with serve_guarded_s3() as store:
        WATCH.learn(store.key["SecretAccessKey"])
        WATCH.learn(store.key["AccessKeyId"])
        WATCH.learn(store.owner["SecretAccessKey"])
        yield store


@pytest.fixture(scope="session")
def kinesis() -> Iterator[KinesisServer]:
    """One kinesis-local for the whole run. Skips, and says so, where there is no Node."""
    try:
        with serve_kinesis() as server:
            yield server
    except ConfigError as error:
        pytest.skip(f"NOT PROVED, no Kinesis: {error}")


@pytest.fixture(scope="session")
def broker() -> Iterator[KafkaBroker]:
    """One real Kafka for the whole run. Tests that kill it start it again."""
    try:
        serving = serve_kafka()
        running = serving.__enter__()
    except KafkaMissingError as missing:
        pytest.skip(f"NOT PROVED, no real Kafka: {missing}")
    yield running
    serving.__exit__(None, None, None)


@pytest.fixture(scope="session")
def jvm() -> Iterator[JvmEngine]:
    """One Spark on the JVM with Delta and Iceberg for the whole run, beside Lading."""
    try:
        serving = serve_engine()
        running = serving.__enter__()
    except JarsMissingError as missing:
        pytest.skip(f"NOT PROVED, no engine on the JVM: {missing}")
    yield running
    serving.__exit__(None, None, None)


@pytest.fixture
def own_broker(broker: KafkaBroker) -> KafkaBroker:
    """A broker that may be killed, and that listens with a password too."""
    if not broker.is_ours:
        pytest.skip(f"NOT PROVED: the Kafka at {broker.bootstrap} may not be killed")
    return broker


@pytest.fixture(scope="session")
def lakes_jvm() -> Iterator[JvmEngine]:
    """The same with the jars for S3 and for catalogs of every kind."""
    with ExitStack() as stack:
        try:
            running = stack.enter_context(serve_engine(with_lakes=True))
        except JarsMissingError as missing:
            pytest.skip(f"NOT PROVED, no engine on the JVM: {missing}")
        yield running


@pytest.fixture(scope="session", params=[NEW.version, pytest.param(OLD.version, marks=pytest.mark.slow)])
def metastore(
    request: pytest.FixtureRequest, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Metastore]:
    """One Hive metastore of each release for the whole run. Tests that kill it start it again."""
    with ExitStack() as stack:
        try:
            folder = tmp_path_factory.mktemp("hive")
            running = stack.enter_context(serve_metastore(folder, postgres, RELEASES[request.param]))
        except JarsMissingError as missing:
            pytest.skip(f"NOT PROVED, no Hive metastore: {missing}")
        yield running
