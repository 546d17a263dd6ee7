"""A catalog of `lading.toml`, from the door: a job loads into its table, also after it was away from the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.glue import GlueCatalog

from lading.errors import ConfigError
from tests.service.conftest import Desk
from tests.service.test_rollbacks import LocalDesk
from tests.support.lakes import LakeCatalog, glue_lake
from tests.tables.s3_server import S3Server

SECRETS = ("access_key", "secret_key")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = LocalDesk(tmp_path)
    yield made
    made.lading.close()


@pytest.fixture
def lake(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> LakeCatalog:
    """Glue, as moto has it, with its keys in the environment."""
    monkeypatch.setenv("LAKE_ACCESS_KEY", s3.options.access_key)
    monkeypatch.setenv("LAKE_SECRET_KEY", s3.options.secret_key)
    return glue_lake(s3)


def write(desk: Desk, lake: LakeCatalog) -> Path:
    """As it stands in Git: secrets are references."""
    lines = ["[catalogs.lake]", 'comment = "of the installation"']
    for name, value in lake.properties.items():
        last = name.rpartition(".")[2]
        lines.append(f'"{name}" = "{f"env:LAKE_{last.upper()}" if last in SECRETS else value}"')
    file = desk.path / "home" / "lading.toml"
    file.write_text("\n".join(lines) + "\n")
    return file


def ids(lake: LakeCatalog) -> list[int]:
    """As PyIceberg reads them, which knows nothing of Lading."""
    said = lake.properties
    keys = {"glue.access-key-id": said["glue.access_key"], "glue.secret-access-key": said["glue.secret_key"]}
    place = {"glue.endpoint": said["glue.endpoint"], "glue.region": said["glue.region"]}
    table = GlueCatalog("theirs", **place, **keys, **lake.files).load_table("installed.orders")
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def test_a_job_loads_into_a_table_of_it(desk: Desk, lake: LakeCatalog) -> None:
    file = write(desk, lake)
    desk.restart()
    desk.sql("CREATE DATABASE lake.installed")
    desk.table("lake.installed.orders", form="iceberg")
    desk.put_orders("a.csv", 0, 3)
    desk.create(target="lake.installed.orders")
    desk.run()
    assert ids(lake) == [0, 1, 2], desk.show("ErrorMsg")
    # Somebody takes it out of the file, and puts it back: the job says what it misses, and goes on.
    text = file.read_text()
    file.unlink()
    desk.restart()
    desk.put_orders("b.csv", 3, 4)
    desk.run()
    assert desk.show("Status") == "PAUSED"
    assert "lake" in desk.show("ErrorMsg")
    file.write_text(text)
    desk.restart()
    desk.sql("RESUME JOB WHERE jobName = 'j'")
    desk.run()
    assert ids(lake) == list(range(7)), desk.show("ErrorMsg")
    assert desk.lading.verify("j").is_clean
    desk.sql("DROP JOB WHERE jobName = 'j'")
    with pytest.raises(ConfigError, match=r"\[catalogs.lake\]"):
        desk.sql("DROP CATALOG lake")
