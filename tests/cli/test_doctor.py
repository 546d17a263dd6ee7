"""`lading doctor` of a good home and of a broken one, without a service and through one."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from lading.http.app import create_app
from lading.http.server import HttpServer
from lading.service.facade import Lading
from lading.service.runtime.address_file import ServiceAddress, write_address
from lading.testing.marked import MARK, secret
from tests.cli.test_config_file import CATALOG, run
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_topics import Topics
from tests.tables.s3_server import S3Server, serve_s3


@pytest.fixture(scope="module")
def store() -> Iterator[S3Server]:
    with serve_s3() as server:
        yield server


class Sick:
    """A home with a table here and one in S3, and a job of files."""

    def __init__(self, path: Path, store: S3Server) -> None:
        self.home, self.inbox = path / "home", path / "in"
        self.inbox.mkdir()
        run("init", "--home", str(self.home))
        with Lading(self.home, allow_private_endpoints="true") as lading:
            for text in (
                "CREATE DATABASE shop",
                "CREATE TABLE shop.orders (id BIGINT) USING delta",
                f'CREATE TABLE shop.far (id BIGINT) USING delta LOCATION "s3://{store.make_bucket()}/far" '
                f'TBLPROPERTIES("s3.endpoint"="{store.endpoint}", "s3.region"="us-east-1", "use_path_style"="true", '
                f'"s3.access_key"="{secret("a")}", "s3.secret_key"="{secret("b")}")',
                "CREATE JOB orders ON STREAMING DO INSERT INTO shop.orders SELECT * FROM "
                f'FILE("uri"="{self.inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")',
            ):
                lading.sql(text)

    def ask(self) -> tuple[int, dict[str, str], str]:
        """Exit status, the state of each check by name, and all that was said."""
        code, said = run("doctor", "--no-spark", "--home", str(self.home))
        lines = [line.split(maxsplit=1) for line in said.splitlines() if not line.startswith(" ")]
        assert MARK not in said
        return code, {rest.split(": ")[0]: state for state, rest in lines}, said


@pytest.mark.java
def test_a_good_home_and_a_broken_one(tmp_path: Path, store: S3Server) -> None:
    sick = Sick(tmp_path, store)
    code, states, said = sick.ask()
    assert set(states.values()) == {"ok"}, said
    assert code == 0
    for name in ("Java", "permissions", "store", "settings", "disk", "table shop.orders", "table shop.far"):
        assert name in states
    assert f"clock of {store.endpoint}" in states
    assert "source of orders" in states
    shutil.rmtree(sick.home / "warehouse" / "shop" / "orders")
    shutil.rmtree(sick.inbox)
    sick.home.chmod(0o755)
    (sick.home / "lading.toml").write_text(CATALOG)
    code, states, said = sick.ask()
    assert code == 1
    assert states["permissions"] == "warn"
    bad = {name for name, state in states.items() if state == "fail"}
    assert bad == {"table shop.orders", "catalog lake"}, said
    assert states["source of orders"] == "warn"
    assert "LAKE_CREDENTIAL" in said
    assert states["table shop.far"] == "ok"


def test_brokers_are_asked(tmp_path: Path, broker: KafkaBroker) -> None:
    with serve_s3() as brief:
        sick = Sick(tmp_path, brief)
        topics, topic = Topics(broker), f"t{uuid.uuid4().hex[:8]}"
        topics.create(topic, 2)
        with Lading(sick.home, allow_private_endpoints="true") as lading:
            lading.sql(
                'CREATE ROUTINE LOAD shop.clicks ON shop.orders PROPERTIES("format"="json") '
                f'FROM KAFKA("kafka_broker_list"="{broker.bootstrap}", "kafka_topic"="{topic}")'
            )
        code, states, said = sick.ask()
        assert (code, states["source of shop.clicks"]) == (0, "ok"), said
        topics.delete(topic)
    code, states, said = sick.ask()
    bad = {name for name, state in states.items() if state == "fail"}
    assert (code, bad) == (1, {"table shop.far", "source of shop.clicks"}), said


@pytest.mark.java
def test_what_cannot_be_opened_is_one_line_with_what_to_do(tmp_path: Path) -> None:
    missing = tmp_path / "tpyo"
    code, said = run("doctor", "--no-spark", "--home", str(missing))
    assert (code, f"there is no home at {missing}" in said, "lading init" in said) == (1, True, True)
    assert not missing.exists()
    home = tmp_path / "home"
    run("init", "--home", str(home))
    (home / "lading.db").write_bytes(b"not a database" * 100)
    code, said = run("doctor", "--no-spark", "--home", str(home))
    assert code == 1
    assert "fail  home: " in said


@pytest.mark.java
def test_through_a_service(tmp_path: Path, store: S3Server) -> None:
    sick = Sick(tmp_path, store)
    with Lading(sick.home) as lading:
        server = HttpServer(create_app(lading))
        server.start("127.0.0.1", 0)
        address = f"http://127.0.0.1:{server.port}"
        write_address(sick.home, ServiceAddress(pid=os.getpid(), http=address, mysql_port=0, token=secret("token")))
        try:
            code, states, said = sick.ask()
            assert (code, states["source of orders"]) == (0, "ok"), said
            assert "runs for this home" in said
            shutil.rmtree(sick.inbox)
            code, states, said = sick.ask()
            assert (code, states["source of orders"]) == (0, "warn"), said
            shutil.rmtree(sick.home / "warehouse" / "shop" / "orders")
            code, states, said = sick.ask()
            assert (code, states["table shop.orders"]) == (1, "fail"), said
        finally:
            server.close()
            (sick.home / "service.json").unlink()
