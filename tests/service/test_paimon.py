"""A Paimon table from the door: CREATE TABLE, a job, SELECT, verify, a lost store, a rollback."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lading.errors import ConfigError, LadingError, SqlError
from lading.service.recover import recover
from lading.tables.paimon.kind import KIND
from lading.testing.marked import secret
from tests.service.conftest import Desk
from tests.service.test_rollbacks import LocalDesk
from tests.tables.optional import skip_without
from tests.tables.rig_paimon import append, commit
from tests.tables.s3_server import S3Server

STRANGE = pa.Table.from_pylist(
    [{"id": 100, "city": "ulm", "amount": None}],
    schema=pa.schema(
        [pa.field("id", pa.int64(), nullable=False), ("city", pa.string()), ("amount", pa.decimal128(10, 2))]
    ),
)
PAGE = Path(__file__).parent.parent.parent / "docs" / "paimon.md"


@pytest.fixture(autouse=True)
def library() -> None:
    skip_without(KIND)


def stranger(place: Path) -> Any:
    """The table as pypaimon's filesystem catalog opens it."""
    from pypaimon import CatalogFactory

    catalog = CatalogFactory.create({"warehouse": str(place.parent.parent)})
    return catalog.get_table(f"{place.parent.name.removesuffix('.db')}.{place.name}")


def test_a_job_loads_into_a_paimon_table_and_select_reads_it(desk: Desk) -> None:
    place = desk.path / "lake" / "shop.db" / "orders"
    desk.table(form="paimon", more=f"PARTITIONED BY (city) LOCATION '{place}'")
    desk.create(properties='"s3.max_batch_files"="1", "session.enable_insert_strict"="false"')
    desk.put_orders("a.csv", 0, 10)
    desk.put("b.csv", ["10,oslo,1.50", "bad,oslo,1.50", "11,,2.50"])
    desk.run()
    assert desk.ids() == list(range(12))
    rows = desk.sql("SELECT city, count(*), sum(amount) FROM orders GROUP BY city ORDER BY city")
    assert [(city, count) for city, count, _ in rows] == [("", 1), ("essen", 10), ("oslo", 1)]
    assert desk.lading.verify("j").is_clean
    builder = stranger(place).new_read_builder()
    assert builder.new_read().to_arrow(builder.new_scan().plan().splits()).num_rows == 12
    # The store is lost: the table alone brings the job back.
    desk.lading.close()
    (desk.path / "home" / "lading.db").unlink()
    desk.restart_empty()
    fates = {finding.what: finding.fate for finding in recover(desk.lading, [str(place)])}
    assert fates == {"table": "recovered", "job": "recovered"}
    desk.sql("USE shop; RESUME JOB WHERE jobName='j'")
    desk.put_orders("c.csv", 20, 5)
    desk.run()
    assert desk.ids() == [*range(12), *range(20, 25)]
    # Another engine rolls the table back: the job stops, and goes on when somebody accepts it.
    table = stranger(place)
    table.rollback_to(table.snapshot_manager().get_latest_snapshot().id - 2)
    desk.run()
    assert desk.show("Status") == "PAUSED"
    assert "The table was rolled back" in desk.show("ErrorMsg")


def test_a_table_in_s3_is_made_with_keys_and_dropped_without_its_files(tmp_path: Path, s3: S3Server) -> None:
    desk, bucket = Desk(tmp_path), s3.make_bucket()
    keys = f"'s3.endpoint'='{s3.options.endpoint}', 's3.access_key'='{s3.options.access_key}', "
    keys += f"'s3.secret_key'='{s3.options.secret_key}', 's3.region'='us-east-1', 'use_path_style'='true'"
    desk.table(form="paimon", more=f"LOCATION 's3://{bucket}/wh/shop.db/orders' TBLPROPERTIES({keys})")
    assert desk.ids() == []
    assert desk.lading.catalog.open_table("shop", "orders").location == f"s3://{bucket}/wh/shop.db/orders"
    desk.sql("DROP TABLE orders")
    with pytest.raises(LadingError, match="There is already a Paimon table"):
        desk.table(form="paimon", more=f"LOCATION 's3://{bucket}/wh/shop.db/orders' TBLPROPERTIES({keys})")
    desk.lading.close()


def test_verify_tells_what_others_removed_from_a_loss(tmp_path: Path) -> None:
    desk = LocalDesk(tmp_path)
    place = tmp_path / "lake" / "shop.db" / "orders"
    desk.table(form="paimon", more=f"LOCATION '{place}'")
    desk.create()
    desk.put_orders("a.csv", 0, 3)
    desk.run()
    append(stranger(place), STRANGE)
    assert desk.lading.verify("j").told == "clean"
    commit(stranger(place).new_batch_write_builder().overwrite(), STRANGE)
    assert "others removed 3 rows (OVERWRITE in snapshot 4" in desk.lading.verify("j").told
    assert desk.ids() == [100]
    desk.put_orders("b.csv", 10, 2)
    desk.run()
    assert desk.ids() == [10, 11, 100]
    # Somebody drops a manifest entry by hand: no snapshot removed the file.
    newest = place / "snapshot" / "snapshot-5"
    body = json.loads(newest.read_text())
    empty = json.loads((place / "snapshot" / "snapshot-1").read_text())
    taken = {name: empty[name.replace("delta", "base")] for name in ("deltaManifestList", "deltaManifestListSize")}
    newest.write_text(json.dumps({**body, **taken}))
    assert not desk.lading.verify("j").is_clean
    desk.lading.close()


def test_the_statements_of_the_page_run(tmp_path: Path, s3: S3Server) -> None:
    desk, bucket = Desk(tmp_path), s3.make_bucket()
    desk.sql("DROP DATABASE shop")
    statements = re.findall(r"^```sql\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert len(statements) == 2
    for text in statements:
        here = text.replace("http://127.0.0.1:9000", s3.options.endpoint).replace("s3://lake/", f"s3://{bucket}/")
        desk.sql(here.replace("'testing'", f"'{secret('key')}'"))
    assert sorted(str(row[0]) for row in desk.sql("SHOW TABLES")) == ["clicks", "orders"]
    assert (tmp_path / "home" / "warehouse" / "shop" / "orders" / "schema" / "schema-0").is_file()
    desk.lading.close()


def test_a_primary_key_is_refused_by_name(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with pytest.raises(SqlError, match="PRIMARY KEY"):
        desk.sql("CREATE TABLE t (id BIGINT NOT NULL, city STRING, PRIMARY KEY (id)) USING paimon")
    with pytest.raises(ConfigError, match="cannot have a PRIMARY KEY"):
        desk.sql("CREATE TABLE t (id BIGINT NOT NULL) USING paimon TBLPROPERTIES('primary-key'='id')")
    assert desk.sql("SHOW TABLES") == []
    desk.lading.close()
