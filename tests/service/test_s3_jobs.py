"""Jobs that read from S3: credentials, secrets, listing failures, every page."""

from __future__ import annotations

import json
from pathlib import Path

import boto3
import pytest

from lading.errors import LadingError
from lading.service.recover import recover
from lading.tables.delta.table import DeltaLakeTable
from lading.tables.iceberg.table import IcebergTable
from lading.testing.marked import secret
from tests.service.conftest import Desk
from tests.tables.s3_server import S3Server

SECRET = secret("nobody-may-see")
KEY = secret("access")


def put(s3: S3Server, bucket: str, key: str, text: str) -> None:
    client = boto3.client(
        "s3",
        endpoint_url=s3.endpoint,
        region_name="us-east-1",
        aws_access_key_id=secret("owner"),
        aws_secret_access_key=secret("owner"),
    )
    client.put_object(Bucket=bucket, Key=key, Body=text.encode())


def statement(s3: S3Server, bucket: str, *, name: str = "j", format: str = "json", glob: str = "in/*.json") -> str:
    return f"""CREATE JOB {name} ON STREAMING DO INSERT INTO orders SELECT id, city, amount FROM S3(
        "uri"="s3://{bucket}/{glob}", "format"="{format}", "s3.endpoint"="{s3.endpoint}", "s3.region"="us-east-1",
        "s3.access_key"="{KEY}", "s3.secret_key"="{SECRET}", "use_path_style"="true")"""


def test_objects_become_rows_once(desk: Desk, s3: S3Server) -> None:
    bucket = s3.make_bucket()
    desk.table()
    put(s3, bucket, "in/a.json", '{"id": 1, "city": "essen", "amount": 1.5}\n{"id": 2, "amount": "2.5"}\n')
    put(s3, bucket, "in/a.txt", "not a row")
    desk.sql(statement(s3, bucket))
    desk.run()
    put(s3, bucket, "in/b.json", '{"id": 3, "city": "oslo", "amount": 3}\n')
    desk.run()
    desk.restart()
    desk.run()
    assert desk.ids() == [1, 2, 3]
    assert desk.show("CurrentOffset") == json.dumps({"fileName": "in/b.json"})


def test_a_secret_is_in_no_answer_bill_log_or_file_but_the_store(desk: Desk, s3: S3Server) -> None:
    bucket = s3.make_bucket()
    desk.table()
    put(s3, bucket, "in/a.json", '{"id": 1, "city": "essen", "amount": 1.5}\n')
    desk.sql(statement(s3, bucket))
    desk.run()
    shown = [*desk.sql("SHOW CREATE JOB j"), *desk.sql('SELECT * FROM jobs("type"="insert")')]
    shown += [*desk.sql("EXPLAIN JOB j"), *desk.sql("SHOW LOAD AUDIT FOR j")]
    assert SECRET not in repr(shown)
    assert "******" in repr(shown)
    home = desk.path / "home"
    holders = [path for path in home.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert {path.name.partition("-")[0] for path in holders} <= {"lading.db"}


def test_an_error_in_a_statement_does_not_show_its_secrets(desk: Desk, s3: S3Server) -> None:
    with pytest.raises(LadingError) as caught:
        desk.sql(statement(s3, "some-bucket").replace('"format"', '"formt"'))
    assert SECRET not in str(caught.value)


def test_a_bucket_that_is_not_there_is_said_at_create(desk: Desk, s3: S3Server) -> None:
    desk.table()
    with pytest.raises(LadingError, match="no-such-bucket"):
        desk.sql(statement(s3, "no-such-bucket", format="csv_with_names"))
    assert desk.sql('SELECT * FROM jobs("type"="insert")') == []


def test_a_listing_that_fails_pauses_the_job_and_loses_nothing(desk: Desk, s3: S3Server) -> None:
    bucket = s3.make_bucket()
    desk.table()
    put(s3, bucket, "in/a.json", '{"id": 1, "city": "essen", "amount": 1.5}\n')
    desk.sql(statement(s3, bucket))
    desk.run()
    desk.sql("PAUSE JOB WHERE jobName='j'")
    broken = (
        statement(s3, bucket).replace(s3.endpoint, "http://127.0.0.1:1").removeprefix("CREATE JOB j ON STREAMING DO")
    )
    desk.sql(f"ALTER JOB j {broken}; RESUME JOB WHERE jobName='j'")
    desk.run()
    assert desk.show("Status") == "PAUSED"
    assert "127.0.0.1:1" in desk.show("ErrorMsg")
    working = statement(s3, bucket).removeprefix("CREATE JOB j ON STREAMING DO")
    put(s3, bucket, "in/b.json", '{"id": 2, "city": "oslo", "amount": 3}\n')
    if desk.show("Status") != "PAUSED":
        desk.sql("PAUSE JOB WHERE jobName='j'")
    desk.sql(f"ALTER JOB j {working}; RESUME JOB WHERE jobName='j'")
    desk.run()
    assert desk.ids() == [1, 2]
    assert not list(Path(desk.path).glob("*.tmp"))


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_a_table_may_be_in_s3_and_its_keys_are_sealed(desk: Desk, s3: S3Server, form: str) -> None:
    bucket = s3.make_bucket()
    desk.sql(
        f"""CREATE TABLE orders (id BIGINT, city STRING, amount DECIMAL(10,2)) USING {form}
        LOCATION 's3://{bucket}/lake/orders' TBLPROPERTIES ("s3.endpoint"="{s3.endpoint}", "s3.region"="us-east-1",
        "s3.access_key"="{KEY}", "s3.secret_key"="{SECRET}", "use_path_style"="true")"""
    )
    desk.put_orders("a.csv", 0, 10)
    desk.create(properties='"session.enable_insert_strict"="false"')
    desk.run()
    desk.restart()
    desk.put_orders("b.csv", 10, 5)
    desk.run()
    assert desk.ids() == list(range(15))
    assert desk.lading.verify("j").is_clean
    for file in (desk.path / "home").rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes(), file


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_a_table_in_s3_is_read_by_the_tasks_of_spark(
    desk: Desk, s3: S3Server, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With partitions, one of them NULL or of an odd name, times, and what the local table has as well."""
    bucket = s3.make_bucket()
    columns = "(id BIGINT, city VARCHAR(20), amount DECIMAL(10,2), at TIMESTAMP) USING"
    place = f"""LOCATION 's3://{bucket}/lake/far' TBLPROPERTIES ("s3.endpoint"="{s3.endpoint}",
        "s3.region"="us-east-1", "s3.access_key"="{KEY}", "s3.secret_key"="{SECRET}", "use_path_style"="true")"""
    desk.sql(f"CREATE TABLE near {columns} {form} PARTITIONED BY (city)")
    desk.sql(f"CREATE TABLE far {columns} {form} PARTITIONED BY (city) {place}")
    rows = [f"{number},{('essen', 'a b/c=d%', '')[number % 3]},{number}.25,2026-01-02 03:04:05" for number in range(30)]
    desk.put("a.csv", rows, header="id,city,amount,at")
    source = f'FILE("uri"="{desk.inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")'
    for name in ("near", "far"):
        select = f"SELECT id, nullif(city, '') AS city, amount, at FROM {source}"
        desk.sql(f"CREATE JOB {name} ON STREAMING DO INSERT INTO {name} (id, city, amount, at) {select}")
    desk.run()
    for lake in (DeltaLakeTable, IcebergTable):
        monkeypatch.setattr(lake, "scan", lambda self: pytest.fail("The whole table was brought into this process."))
    asked = "SELECT id, city, amount, at FROM {} ORDER BY id"
    found = desk.sql(asked.format("far"))
    assert found == desk.sql(asked.format("near"))
    assert len(found) == 30
    counted = "SELECT city, count(*), sum(amount) FROM far WHERE id > 2 GROUP BY city ORDER BY city"
    assert [row[:2] for row in desk.sql(counted)] == [(None, 9), ("a b/c=d%", 9), ("essen", 9)]


def test_references_to_keys_outlive_a_lost_store(desk: Desk, s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bills have the definition as it was written, and not as it was followed."""
    monkeypatch.setenv("SHOP_KEY", secret("access"))
    monkeypatch.setenv("SHOP_SECRET", secret("key"))
    bucket = s3.make_bucket()
    put(s3, bucket, "in/a.json", '{"id": 1, "city": "essen", "amount": 1.5}\n')
    desk.table()
    desk.sql(
        "CREATE JOB j ON STREAMING DO INSERT INTO orders SELECT id, city, amount FROM S3("
        f'"uri"="s3://{bucket}/in/*.json", "format"="json", "s3.endpoint"="{s3.endpoint}", "s3.region"="us-east-1", '
        '"use_path_style"="true", "s3.access_key"="env:SHOP_KEY", "s3.secret_key"="env:SHOP_SECRET")'
    )
    desk.run()
    before = desk.lading.job("j")
    assert desk.lading.bills(before, 1)[0].definition == before.definition
    assert "env:SHOP_SECRET" in before.definition
    desk.lading.close()
    (desk.path / "home" / "lading.db").unlink()
    desk.restart_empty()
    recover(desk.lading)
    desk.sql("USE shop; RESUME JOB WHERE jobName='j'")
    put(s3, bucket, "in/b.json", '{"id": 2, "city": "essen", "amount": 1.5}\n')
    desk.run()
    assert desk.ids() == [1, 2]
