"""Names and values that a producer may write and no table can take as they are. No Spark is started."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lading.errors import ConfigError, ConflictError
from lading.jobs.record import JobState
from tests.console.local import LocalLading

FORMS = ["delta", "iceberg", "paimon"]


@pytest.fixture
def lading(tmp_path: Path) -> Iterator[LocalLading]:
    (tmp_path / "in").mkdir()
    with LocalLading(tmp_path / "home") as made:
        yield made


def make(lading: LocalLading, tmp_path: Path, columns: str, properties: str, form: str = "delta") -> None:
    lading.sql(
        f"CREATE TABLE t ({columns}) USING {form};"
        f'CREATE JOB j PROPERTIES({properties}, "file.settle_seconds"="0") ON STREAMING DO '
        f'INSERT INTO t SELECT * FROM FILE("uri"="{tmp_path}/in/*.json", "format"="json")'
    )


@pytest.mark.parametrize("form", FORMS)
def test_fields_that_differ_by_case_alone_do_not_break_the_table(
    lading: LocalLading, tmp_path: Path, form: str
) -> None:
    make(lading, tmp_path, "id BIGINT, _r STRING", '"schema.evolution"="ADD", "rescued_data_column"="_r"', form)
    (tmp_path / "in" / "1.json").write_text('{"id": 1, "Foo": 1, "foo": "x"}\n')
    lading.run()
    table = lading.catalog.open_table("default", "t")
    assert table.schema().names == ["id", "_r", "Foo"]
    (row,) = table.scan().to_pylist()
    rescued = json.loads(row.pop("_r"))
    assert (row, rescued["foo"]) == ({"id": 1, "Foo": 1}, "x")


def test_without_a_rescued_column_they_pause_the_job(lading: LocalLading, tmp_path: Path) -> None:
    make(lading, tmp_path, "id BIGINT", '"schema.evolution"="ADD"')
    (tmp_path / "in" / "1.json").write_text('{"id": 1, "Foo": 1, "foo": "x"}\n')
    lading.run()
    record = lading.job("j")
    assert record.state is JobState.PAUSED
    assert record.reason is not None
    assert "'foo'" in record.reason.message
    assert lading.catalog.open_table("default", "t").scan().num_rows == 0


@pytest.mark.parametrize("form", FORMS)
def test_no_statement_makes_columns_that_differ_by_case_alone(lading: LocalLading, tmp_path: Path, form: str) -> None:
    lading.sql(f"CREATE TABLE t (id BIGINT) USING {form}")
    with pytest.raises(ConflictError, match="already has a column foo"):
        lading.sql("ALTER TABLE t ADD COLUMN Foo BIGINT, ADD COLUMN foo STRING")
    assert lading.catalog.open_table("default", "t").schema().names == ["id"]
    (tmp_path / "in" / "1.json").write_text('{"Foo": 1, "foo": "x"}\n')
    with pytest.raises(ConfigError, match="case"):
        lading.sql(f'CREATE TABLE u USING {form} AS SCHEMA OF FILE("uri"="{tmp_path}/in/*.json", "format"="json")')


@pytest.mark.parametrize("evolution", ["ADD", "NONE"])
def test_a_field_with_the_name_of_a_hidden_column_is_rescued(
    lading: LocalLading, tmp_path: Path, evolution: str
) -> None:
    properties = f'"schema.evolution"="{evolution}", "rescued_data_column"="_r"'
    make(lading, tmp_path, "id BIGINT, _r STRING", properties)
    fields = {"__rest": "q", "__file": "f", "__row": 7, "__raw": "x", "__error": "e", "_r": "mine"}
    (tmp_path / "in" / "1.json").write_text(json.dumps({"id": 1, **fields}) + "\n")
    lading.run()
    (row,) = lading.catalog.open_table("default", "t").scan().to_pylist()
    rescued = json.loads(row["_r"])
    assert {name: rescued.get(name) for name in fields} == fields


def test_without_a_rescued_column_it_pauses_the_job(lading: LocalLading, tmp_path: Path) -> None:
    make(lading, tmp_path, "id BIGINT", '"schema.evolution"="ADD"')
    (tmp_path / "in" / "1.json").write_text('{"id": 1, "__rest": "q"}\n')
    lading.run()
    assert lading.job("j").state is JobState.PAUSED


HIDDEN: dict[str, list[object]] = {"__rest": ["a"], "__file": ["b"], "__row": [7], "__error": ["d"], "z": ["c"]}


@pytest.mark.parametrize("form", ["csv_with_names", "parquet"])
def test_columns_of_files_with_such_names_are_rescued(lading: LocalLading, tmp_path: Path, form: str) -> None:
    place = f'"uri"="{tmp_path}/in/*", "format"="{form}", "column_separator"=","'
    lading.sql(
        "CREATE TABLE t (id BIGINT, _r STRING) USING delta;"
        'CREATE JOB j PROPERTIES("schema.evolution"="ADD", "rescued_data_column"="_r", "file.settle_seconds"="0") '
        f"ON STREAMING DO INSERT INTO t SELECT * FROM FILE({place})"
    )
    table = pa.table({"id": [1], **HIDDEN})
    if form == "parquet":
        pq.write_table(table, tmp_path / "in" / "1")
    else:
        rows = (table.column_names, *map(dict.values, table.to_pylist()))
        (tmp_path / "in" / "1").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    lading.run()
    (row,) = lading.catalog.open_table("default", "t").scan().to_pylist()
    rescued = json.loads(row["_r"])
    assert {name: str(rescued.get(name)) for name in HIDDEN if name != "z"} == {
        name: str(values[0]) for name, values in HIDDEN.items() if name != "z"
    }
    assert (row["id"], row["z"]) == (1, "c")
    with pytest.raises(ConfigError, match="a name that Lading itself uses"):
        lading.sql(f"SELECT * FROM FILE({place})")


NUMBERS = ["9" * 5000, "-" + "9" * 5000, "1e-99999999999999999999", "1e99999999999999999999"]


def test_numbers_beyond_all_types_are_texts(lading: LocalLading, tmp_path: Path) -> None:
    make(lading, tmp_path, "id BIGINT", '"schema.evolution"="ADD"')
    place = f'FILE("uri"="{tmp_path}/in/*.json", "format"="json")'
    for at, number in enumerate(NUMBERS):
        (tmp_path / "in" / f"{at}.json").write_text(f'{{"id": {at}, "x{at}": {number}}}\n')
    assert {row[1] for row in lading.sql(f"DESCRIBE FROM {place}")[0].rows} == {"bigint", "string"}
    lading.run()
    found = lading.catalog.open_table("default", "t").scan().sort_by("id").to_pylist()
    assert [row[f"x{at}"] for at, row in enumerate(found)] == NUMBERS


def test_a_look_keeps_no_more_than_it_has_room_for(lading: LocalLading, tmp_path: Path) -> None:
    line = json.dumps({"a": "y" * 1_000_000}) + "\n"
    with (tmp_path / "in" / "1.json").open("w") as file:
        for _ in range(150):
            file.write(line)
    place = f'FILE("uri"="{tmp_path}/in/*.json", "format"="json")'
    assert 64 < len(lading.sql(f"SELECT * FROM {place} LIMIT 10000")[0].rows) < 110
