"""Whole jobs on both paths: the same rows, the same figures, the same words about bad rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from lading.pipeline import stager
from lading.pipeline.checked import checked_select, is_same_each_time
from tests.service.conftest import Desk

LOOSE = '"session.enable_insert_strict"="false", "session.insert_max_filter_ratio"="1"'
STRICT = '"session.enable_insert_strict"="true"'
TABLE = (
    "CREATE TABLE orders (id BIGINT NOT NULL, city VARCHAR(6), amount DECIMAL(10,2), day DATE, at DATETIME, "
    "share DOUBLE, is_new BOOLEAN, size INT) USING delta"
)
HEADER = "id,city,amount,day,at,share,is_new,size"
ROWS = [
    "1,essen,1.5,2024-01-05,2024-01-05 10:11:12,0.5,true,10",
    "2,köln,2.675,2024-1-5,2024-01-05T10:11:12.123456,1e3,no,5.0",
    "3,bonn,abc,1582-10-10,2024-01-05,nan,1,1e2",
    "4,city 7,1,0001-01-01,2024-01-05 10:11:12Z,-0.0,x,7",
    ",essen,1,2024-01-05,,1,,",
    " 6 ,dortmund,99999999.995,2024-02-30,x,inf,true,2147483648",
    'x,"it\'s ""so""",1,,,,,',
    "8,essen",
    "9,,+1,2024,2024-01-05 1:2:3,.5,t,-1",
]


@contextmanager
def desks(path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Desk]]:
    """One home with the vector path and one without."""
    found = []
    for name, is_on in (("vector", "yes"), ("general", "no")):
        monkeypatch.setenv("LADING_VECTOR_PATH", is_on)
        (path / name).mkdir()
        found.append(Desk(path / name, spark))
    yield found
    for desk in found:
        desk.lading.close()


def told(desk: Desk) -> dict[str, Any]:
    """All that can be seen of a job, by others' readers where there are some."""
    desk.run()
    location = desk.lading.catalog.open_table("shop", "orders").location
    table = DeltaTable(location)
    rows = sorted(map(str, table.to_pyarrow_table().to_pylist()))
    totals = desk.lading.job("j").totals
    counts = None if totals is None else totals.rows
    said = desk.show("ErrorMsg").replace(str(desk.path), "")
    errors = [(Path(str(row[1])).name, *row[2:]) for row in desk.sql("SHOW LOAD ERRORS FOR j")]
    statistics = table.get_add_actions(flatten=True)
    kept = [name for name in statistics.schema.names if name.startswith(("min", "max", "null_count", "num_records"))]
    figures = [str(pa.table(statistics).select(kept).to_pylist())]
    return {"rows": rows, "counts": counts, "errors": sorted(map(str, errors)), "said": said, "statistics": figures}


def path_of(desk: Desk) -> tuple[str, str]:
    lines = {str(what): str(how) for what, how in desk.sql("EXPLAIN JOB j")}
    return lines["path"].partition(":")[0], lines.get("why", "")


def both(pair: list[Desk], select: str, properties: str, where: str = "true", form: str = "csv") -> dict[str, Any]:
    """The job on both paths; what is seen is the same."""
    options = '"format"="csv_with_names", "column_separator"=","' if form == "csv" else f'"format"="{form}"'
    seen = []
    for desk in pair:
        desk.sql(
            f"CREATE JOB j PROPERTIES({properties}) ON STREAMING DO INSERT INTO orders SELECT {select} "
            f'FROM FILE("uri"="{desk.inbox}/*.{form}", {options}) WHERE {where}'
        )
        seen.append(told(desk))
    assert seen[0] == seen[1]
    assert [path_of(desk)[0] for desk in pair] == ["vector", "general"]
    return seen[0]


@pytest.mark.parametrize("properties", [LOOSE, STRICT], ids=["loose", "strict"])
def test_odd_and_bad_rows_of_files_have_the_same_fates(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, properties: str
) -> None:
    with desks(tmp_path, spark, monkeypatch) as pair:
        for desk in pair:
            desk.sql(TABLE)
            desk.put("a.csv", ROWS, HEADER)
            desk.put("b.csv", [f"{n},city {n % 10},{n % 1000}.25,2024-01-05,,0.5,1,{n}" for n in range(20_000)], HEADER)
        seen = both(
            pair, "id, city, amount * 1.1, day, at, share, is_new, size", properties, "city <> 'city 7' OR size > 5"
        )
        assert (len(seen["rows"]) > 1000) == (properties == LOOSE)
        assert seen["errors"] if properties == LOOSE else "cannot read" in seen["said"]


@pytest.mark.parametrize("most", [stager._MOST_BESIDE, 0], ids=["beside", "inside"])
def test_spark_plans_a_job_once_unless_too_much_goes_beside_its_functions(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    frame, made = stager.SparkStager._frame, Counter[str]()

    def counted(self: stager.SparkStager, *given: Any) -> Any:
        made[self.group] += 1
        return frame(self, *given)

    monkeypatch.setattr(stager.SparkStager, "_frame", counted)
    monkeypatch.setattr(stager, "_MOST_BESIDE", most)
    with desks(tmp_path, spark, monkeypatch) as pair:
        for desk in pair:
            desk.table()
            for name in "ab":
                desk.put(f"{name}.csv", [f"{ord(name)},essen,1.5", "x,bad,1"])
            desk.create(properties=f'{LOOSE}, "s3.max_batch_files"="1"')
            desk.run()
            assert desk.ids() == [ord("a"), ord("b")]
            assert len(desk.sql("SHOW LOAD ERRORS FOR j")) == 2
    assert [*made.values()] == [1 if most else 2] * 2


OTHER_EACH_TIME = (
    *("now()", "current_timestamp", "localtimestamp()", "uuid()", "rand()", "randn()", "randstr(9)"),
    "uniform(0, 1000000000)",
)


def test_each_batch_has_its_own_time_and_its_own_chance(tmp_path: Path, spark: SparkSession) -> None:
    """Spark writes both into a plan: one that was kept would give those of the first batch."""
    desk = Desk(tmp_path, spark)
    columns = ", ".join(f"c{number} STRING" for number in range(len(OTHER_EACH_TIME)))
    desk.sql(f"CREATE TABLE orders (id BIGINT NOT NULL, {columns}) USING delta")
    told = ", ".join(f"CAST({expression} AS STRING)" for expression in OTHER_EACH_TIME)
    desk.sql(
        'CREATE JOB j PROPERTIES("s3.max_batch_files"="1") ON STREAMING DO INSERT INTO orders '
        f'SELECT id, {told} FROM FILE("uri"="{desk.inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")'
    )
    for number in range(2):
        (desk.inbox / f"{number}.csv").write_text(f"id\n{number}\n")
    desk.run()
    first, second = desk.sql("SELECT * FROM orders ORDER BY id")
    assert [one for one, other in zip(first, second, strict=True) if one == other] == []


@pytest.mark.parametrize("expression", [*OTHER_EACH_TIME, "unix_timestamp()", "CAST('NOW' AS TIMESTAMP)"])
def test_a_plan_of_what_is_other_each_time_is_not_kept(spark: SparkSession, expression: str) -> None:
    other, same = [[f"CAST({expression} AS STRING) AS told"]], [["id + 1 AS told"]]
    assert not is_same_each_time(checked_select(spark.range(1), other), other)
    assert is_same_each_time(checked_select(spark.range(1), same), same)


def test_files_with_types_of_their_own(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table(
        {"id": pa.array([1, 2, 3, 4], pa.int64()), "city": ["a", None, "ccc", "d"], "amount": [1.5, 2.0, 0.1, -3.0]}
    )
    with desks(tmp_path, spark, monkeypatch) as pair:
        for desk in pair:
            desk.sql("CREATE TABLE orders (id BIGINT NOT NULL, city STRING, amount DOUBLE) USING delta")
            pq.write_table(rows, desk.inbox / "a.parquet")
        both(pair, "id, concat(city, '!'), amount * 2", LOOSE, "amount < 2", "parquet")


def test_a_date_that_is_no_time_is_a_bad_value(tmp_path: Path, spark: SparkSession) -> None:
    """Databases write `infinity` so. Spark's cast of it to a time raises, and the job would be at its end."""
    days = pa.array([19_000, 2**31 - 1, -(2**31), None, -700_000], pa.int32()).cast(pa.date32())
    desk = Desk(tmp_path, spark)
    desk.sql("CREATE TABLE orders (id BIGINT NOT NULL, at DATETIME) USING delta")
    pq.write_table(pa.table({"id": [1, 2, 3, 4, 5], "at": days}), desk.inbox / "a.parquet")
    source = f'FROM FILE("uri"="{desk.inbox}/*.parquet", "format"="parquet")'
    for name, properties in (("strict", STRICT), ("j", LOOSE)):
        desk.sql(f"CREATE JOB {name} PROPERTIES({properties}) ON STREAMING DO INSERT INTO orders SELECT * {source}")
        desk.run()
    assert "cannot read '+5881580-07-11' as timestamp" in desk.show("ErrorMsg", "strict")
    rows = DeltaTable(desk.lading.catalog.open_table("shop", "orders").location).to_pyarrow_table().sort_by("id")
    desk.lading.close()
    assert [None if at is None else at.year for at in rows["at"].to_pylist()] == [2022, None, None, None, 53]


def test_what_is_not_in_the_set_takes_the_general_path_and_says_why(desk: Desk) -> None:
    desk.table()
    desk.put_orders("a.csv", 0, 3)
    desk.create(select="id, regexp_replace(city, 's+', '_'), amount")
    assert path_of(desk) == ("general", "column city: regexp_replace is not in the vector set")


def test_a_batch_that_the_vector_path_is_not_sure_of_is_loaded_by_the_general_one(desk: Desk) -> None:
    desk.table()
    desk.put("a.csv", ["1,essen,1.5"])
    desk.create(select="id, upper(city), amount")
    desk.run()
    assert path_of(desk) == ("vector", "")
    desk.put("b.csv", ["2,ƛ,1.5"])
    desk.run()
    cities = desk.lading.catalog.open_table("shop", "orders").scan()["city"].to_pylist()
    assert sorted(cities) == ["ESSEN", "\ua7dc"]
    assert path_of(desk) == (
        "general",
        "a batch: it had upper of letters that have another case in other versions of Unicode",
    )
