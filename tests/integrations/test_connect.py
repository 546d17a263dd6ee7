"""`lading.connect`: the same program beside a service, at its URL, and with the home for itself."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lading
from lading.cli import remote
from lading.errors import (
    AuthError,
    ConfigError,
    DeniedError,
    JobNotFoundError,
    LadingError,
    RequestError,
    SqlError,
)
from tests.integrations.conftest import Serving

VALUES = {
    "id": [1, 2**62],
    "price": [Decimal("1.50"), None],
    "at": [datetime(2026, 3, 2, 4, 5, 6, 7, tzinfo=UTC), None],
    "day": [date(2026, 3, 2), None],
    "raw": [b"\x00\xff", None],
    "ratio": [float("inf"), 0.5],
    "ok": [True, None],
    "text": ["2026-03-02", "1.50"],
}


def typed(folder: Path) -> str:
    """A look at a file with values that JSON has no words for."""
    pq.write_table(pa.table(VALUES), folder / "typed.parquet")
    return f'SELECT * FROM FILE("uri" = "{folder}/typed.parquet") LIMIT 5'


def test_values_are_the_same_with_and_without_a_service(serving: Serving, tmp_path: Path) -> None:
    look = typed(tmp_path)
    with lading.connect(tmp_path / "home", create=True) as alone, lading.connect(serving.home) as beside:
        assert isinstance(beside, lading.RemoteHome)
        one, other = alone.sql(look)[0], beside.sql(look)[0]
    assert (other.columns, other.rows) == (one.columns, one.rows)
    assert other.to_arrow().equals(one.to_arrow())
    read = pl.from_arrow(other.to_arrow())
    assert isinstance(read, pl.DataFrame)
    assert read["price"].to_list() == VALUES["price"]
    assert list(other.to_pandas()["day"]) == VALUES["day"]


def test_a_job_is_waited_for_and_verified(serving: Serving) -> None:
    with lading.connect(str(serving.home)) as beside:
        done = beside.run(["orders"], timeout=120)
        assert (done["orders"].state, done["orders"].reason) == (lading.JobState.RUNNING, None)
        assert done["orders"].totals is not None
        assert done["orders"].totals.rows.loaded == 0
        assert beside.verify("orders").is_clean
        with pytest.raises(JobNotFoundError):
            beside.run(["nobody"])
        with pytest.raises(SqlError) as wrong:
            beside.sql("SHOW\nTABLS")
    assert (wrong.value.line, wrong.value.exit_code, "Did you mean TABLES?" in str(wrong.value)) == (2, 2, True)


def test_a_url_and_a_token_are_enough_and_the_token_says_what_is_allowed(serving: Serving) -> None:
    with lading.connect(serving.url, token=serving.token) as there:
        assert there.sql("USE shop; SHOW TABLES")[1].dicts() == [{"Tables_in_shop": "orders"}]
        assert there.sql("SHOW TABLES")[0].dicts() == [{"Tables_in_shop": "orders"}]  # USE is kept.
        with pytest.raises(DeniedError):
            there.sql("CREATE DATABASE other")
    for url, token, refused in (
        (serving.url, "lading_wrong", AuthError),
        ("http://127.0.0.1:1", "t", RequestError),
        ("http://lading.example:8030", "t", ConfigError),
        ("ftp://lading.example", "t", ConfigError),
    ):
        with pytest.raises(refused):
            lading.connect(url, token=token).sql("SHOW DATABASES")
    with pytest.raises(ConfigError, match=r"certificate /no/such\.pem cannot be read"):
        lading.connect("https://lading.example", token="t", ca_file="/no/such.pem")


def test_what_only_a_home_of_ones_own_takes_is_refused_by_name(serving: Serving, tmp_path: Path) -> None:
    for home, more, said in (
        (serving.home, {"spark": {"spark.master": "local[1]"}, "user": "ann"}, "spark, user cannot be given"),
        (serving.url, {"token": "t", "create": True}, "create cannot be given"),
        (tmp_path / "home", {"token": "t"}, "token and ca_file are for the URL"),
        (tmp_path / "none", {}, "There is no home at"),
    ):
        with pytest.raises(LadingError, match=said):
            lading.connect(home, **more)
    assert list(tmp_path.iterdir()) == []


def test_a_path_is_seen_from_where_the_program_is(
    serving: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id,city\n1,essen\n")
    monkeypatch.chdir(tmp_path)
    source = 'FILE("uri" = "in/*.csv", "format" = "csv_with_names", "column_separator" = ",")'
    with lading.connect(serving.home) as beside:
        assert beside.sql(f"SELECT * FROM {source}")[0].rows == (("1", "essen"),)
        told = beside.sql(
            "EXPLAIN CREATE JOB relative ON STREAMING DO CREATE TABLE IF NOT EXISTS shop.relative USING delta "
            f"LOCATION 'lake/here' INSERT INTO shop.relative SELECT * FROM {source}"
        )[0].rows
        assert f"LOCATION '{tmp_path}/lake/here'" in told[0][1]
        assert ("loaded", "1") in told
        with pytest.raises(SqlError, match="column_separator"):
            beside.sql(
                "CREATE JOB relative ON STREAMING DO INSERT INTO shop.orders SELECT * "
                'FROM FILE("uri" = "in/*.csv", "format" = "csv_with_names")'
            )
        beside.sql(f"CREATE TABLE shop.relative USING delta AS SCHEMA OF {source}")
        beside.sql("DROP TABLE shop.relative")
    assert not (tmp_path / "lake").exists()


def test_half_an_answer_is_none(serving: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "MOST_ROWS", 1)
    with (
        lading.connect(serving.home) as beside,
        pytest.raises(ConfigError, match="more than 1 rows") as cut,
    ):
        beside.sql(typed(tmp_path))
    assert (cut.value.code, cut.value.left) == ("QueryLimit", "The statements were run.")
