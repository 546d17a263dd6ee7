"""What becomes of a catalog that is dead, and of bills in tables of others, with time. Without Spark."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from lading.errors import (
    ConfigError,
    LadingError,
)
from lading.tables.maintenance import CarePolicy
from tests.service.conftest import Desk
from tests.service.test_catalog_statements import SCHEMA, properties
from tests.service.test_catalog_statements import desk as desk
from tests.service.test_catalog_statements import theirs as theirs
from tests.service.test_catalog_statements import uri as uri
from tests.store.postgres import PostgresServer


def test_a_dead_catalog_stops_a_drop_only_of_what_its_jobs_load_into(
    desk: Desk, theirs: SqlCatalog, postgres: PostgresServer, uri: str, tmp_path: Path
) -> None:
    theirs.create_table("sales.others", SCHEMA)
    desk.put_orders("a.csv", 1, 2)
    desk.sql(f"CREATE CATALOG lake {properties(uri, tmp_path)}")
    twin = f'{properties(uri, tmp_path)[:-1]}, "iceberg.jdbc.catalog_name" = "lake")'
    desk.sql(f"CREATE CATALOG pond {twin}")
    desk.create(target="lake.sales.orders")
    desk.sql("USE internal.shop")
    gone = uri.rpartition("/")[0] + "/no_such_database"
    entry = desk.lading.store.find_catalog("lake")
    assert entry is not None
    desk.lading.store.save_catalog(replace(entry, properties={**entry.properties, "uri": gone}), old_name="lake")
    with pytest.raises(LadingError):
        desk.sql("SHOW DATABASES FROM lake")
    with pytest.raises(ConfigError, match=r"Table pond.sales.orders is loaded by"):
        desk.sql("DROP TABLE pond.sales.orders")
    with pytest.raises(ConfigError, match="Without PURGE the name alone is dropped"):
        desk.sql("DROP TABLE pond.sales.others PURGE")
    desk.sql("DROP TABLE pond.sales.others")
    assert theirs.list_tables("sales") == [("sales", "orders")]


def test_bills_in_a_table_of_others_go_when_its_owner_expired_the_snapshots_of_their_time(
    desk: Desk, theirs: SqlCatalog, uri: str, tmp_path: Path
) -> None:
    desk.sql(f"CREATE CATALOG lake {properties(uri, tmp_path)}")
    desk.create(target="lake.sales.orders")
    for number in range(4):
        desk.put_orders(f"b{number}.csv", 3 * number, 3)
        desk.run()
    policy = CarePolicy(keep_commits=1, keep_age=timedelta(0), grace=timedelta(0))
    lake, later = desk.lading.catalog.open_table("lake.sales", "orders"), datetime.now(UTC) + timedelta(days=30)
    job_id = desk.lading.job("j").job_id
    before = lake.bills.heads(job_id)
    assert lake.look_after(job_id, policy, later).bills_deleted == 0
    table = theirs.load_table("sales.orders")
    newest = table.current_snapshot()
    assert newest is not None
    old = [each.snapshot_id for each in table.metadata.snapshots if each.snapshot_id != newest.snapshot_id]
    table.maintenance.expire_snapshots().by_ids(old).commit()
    report = lake.look_after(job_id, policy, later)
    after = lake.bills.heads(job_id)
    # The one that was in force when the oldest snapshot was made stays.
    assert (report.bills_deleted, after) == (len(before) - len(after), before[-len(after) :])
    assert 0 < len(after) < len(before)
    desk.put_orders("c.csv", 12, 3)
    desk.run()
    assert theirs.load_table("sales.orders").scan().to_arrow().num_rows == 15


def test_nothing_of_a_table_of_others_is_expired_so_an_older_state_of_it_stays_readable(
    desk: Desk, theirs: SqlCatalog, uri: str, tmp_path: Path
) -> None:
    desk.sql(f"CREATE CATALOG lake {properties(uri, tmp_path)}")
    desk.put_orders("a.csv", 0, 3)
    desk.create(target="lake.sales.orders")
    desk.run()
    older = theirs.load_table("sales.orders").metadata_location
    for number in range(3):
        desk.put_orders(f"b{number}.csv", 3 * (number + 1), 3)
        desk.run()
    policy = CarePolicy(keep_commits=1, keep_age=timedelta(0), grace=timedelta(0))
    lake, later = desk.lading.catalog.open_table("lake.sales", "orders"), datetime.now(UTC) + timedelta(days=30)
    report = lake.look_after(desk.lading.job("j").job_id, policy, later)
    assert (report.snapshots_expired, report.bills_deleted) == (0, 0)
    assert report.remark == "the catalog lake is others': use its own expiry"
    second = SqlCatalog("second", uri=f"sqlite:///{tmp_path}/second.db", warehouse=f"file://{tmp_path}/second")
    second.create_namespace("sales")
    second.register_table("sales.orders", older)
    assert second.load_table("sales.orders").scan().to_arrow().num_rows == 3
    second.close()
    assert theirs.load_table("sales.orders").scan().to_arrow().num_rows == 12
