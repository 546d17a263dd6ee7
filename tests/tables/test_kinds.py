"""The contract of table formats: the same tests for every line of the registry."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from lading.errors import ConfigError, ConflictError, LadingError
from lading.ids import JobId
from lading.model.outcome import Landed
from lading.model.table import Column, PartitionField, TableSpec
from lading.storage.store import open_store
from lading.tables.base import LakeTable
from lading.tables.kind import TableKind, TablePlace
from lading.tables.registry import NAMES, all_kinds, kind_of, open_writer
from tests.tables.drive import load, new_job, opening, put_and_commit
from tests.tables.optional import skip_without

SPEC = TableSpec(
    columns=(
        Column(name="id", type="bigint", nullable=False),
        Column(name="city", type="string"),
        Column(name="size", type="smallint"),
    ),
    partition_by=(PartitionField(column="city"),),
)
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "city": pa.array(["Bonn", "Oslo", None]),
        "size": pa.array([1, None, 3], pa.int16()),
    }
)


@pytest.fixture(params=NAMES)
def kind(request: pytest.FixtureRequest) -> TableKind:
    kind = kind_of(str(request.param))
    skip_without(kind)
    return kind


def test_a_format_without_its_library_is_refused_by_name_and_leaves_nothing(
    kind: TableKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = {"paimon": "pypaimon"}.get(kind.name)
    if library is None:
        assert kind.missing() == ""
        return
    monkeypatch.setitem(sys.modules, library, None)  # As Python has it for a module that cannot be imported.
    assert kind.missing() == library
    for use in (partial(kind.create, spec=SPEC), kind.open):
        with pytest.raises(ConfigError, match=f"{library} is not installed: .*--no-deps"):
            use(place_in(tmp_path))
    kind.drop(place_in(tmp_path))
    assert list(tmp_path.iterdir()) == []


def place_in(path: Path, name: str = "shop.orders") -> TablePlace:
    return TablePlace(home=path, name=name, location=str(path / "warehouse" / name.replace(".", "/")))


def load_rows(lake: LakeTable, rows: pa.Table = ROWS) -> JobId:
    """Rows through the registry's writer; the id of the job."""
    job = new_job()
    first = opening(job)
    put_and_commit(lake, first)
    spec = pickle.loads(pickle.dumps(lake.writer_spec()))
    writer = open_writer(spec, "attempt")
    for batch in rows.cast(spec.schema).to_batches():
        writer.write(batch)
    assert isinstance(put_and_commit(lake, load(job, first, writer.close())), Landed)
    return job.job_id


def test_names_are_those_of_the_registry_and_folders_differ() -> None:
    assert [kind.name for kind in all_kinds()] == list(NAMES)
    assert len({kind.folder for kind in all_kinds()}) == len(NAMES)
    with pytest.raises(ConfigError, match="Known formats: delta, iceberg, paimon"):
        kind_of("hudi")


def test_a_kind_costs_nothing_before_it_is_used() -> None:
    code = (
        "import sys; from lading.tables.registry import all_kinds; all_kinds(); "
        "print([m for m in ('deltalake', 'pyiceberg', 'pypaimon', 'boto3') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_table_that_was_made_can_be_opened_written_and_read(kind: TableKind, tmp_path: Path) -> None:
    place = place_in(tmp_path)
    kind.check_new(place)
    kind.create(place, SPEC)
    lake = kind.open(place)
    assert (lake.version(), list(lake.files())) == (0, [])
    assert lake.schema() == kind.schema_of(SPEC)
    spec = lake.writer_spec()
    assert (spec.format, spec.partition_by) == (kind.name, (("city", "identity"),))
    load_rows(lake)
    assert sorted(kind.open(place).scan().to_pylist(), key=str) == sorted(ROWS.to_pylist(), key=str)
    assert (Path(place.location) / kind.folder).is_dir()


def test_what_select_reads_is_the_files_and_the_schema(kind: TableKind, tmp_path: Path) -> None:
    place = place_in(tmp_path)
    kind.create(place, SPEC)
    load_rows(kind.open(place))
    snapshot = kind.open(place).snapshot()
    assert snapshot.schema.names == ["id", "city", "size"]
    assert len(snapshot.files) == 3
    assert all((Path(place.location) / file).is_file() for file in snapshot.files)
    if snapshot.constants is not None:
        assert snapshot.constants.num_rows == 3


def test_a_snapshot_is_read_by_its_name_after_others_came(kind: TableKind, tmp_path: Path) -> None:
    place = place_in(tmp_path)
    kind.create(place, SPEC)
    lake = kind.open(place)
    names = [lake.snapshot_name()]
    load_rows(lake)
    names.append(kind.open(place).snapshot_name())
    assert len(set(names)) == 2
    again = kind.open(place)
    empty, full = (again.snapshot_named(name) for name in names)
    assert empty is not None
    assert (empty.files, empty.size_bytes, empty.schema.names) == ((), 0, ["id", "city", "size"])
    assert full is not None
    assert full == again.snapshot()
    assert full.size_bytes == sum((Path(place.location) / file).stat().st_size for file in full.files)
    number, dash, schema = names[1].rpartition("-")
    assert again.snapshot_named(f"{int(number or 0) + 7}{dash}{schema}" if dash else str(int(schema) + 7)) is None


def test_a_second_table_at_one_place_is_refused_and_the_first_stays(kind: TableKind, tmp_path: Path) -> None:
    place = place_in(tmp_path)
    kind.create(place, SPEC)
    load_rows(kind.open(place))
    with pytest.raises(LadingError):
        kind.create(place, replace(SPEC, partition_by=()))
    assert kind.open(place).scan().num_rows == 3
    assert kind.open(place).writer_spec().partition_by == (("city", "identity"),)


def test_a_table_that_is_not_there_is_not_made_by_opening_it(kind: TableKind, tmp_path: Path) -> None:
    with pytest.raises(LadingError):
        kind.open(place_in(tmp_path))
    with pytest.raises(LadingError), kind.find(place_in(tmp_path)):
        pass
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "catalog.db"] == []


def test_a_table_is_found_by_its_place_with_its_jobs(kind: TableKind, tmp_path: Path) -> None:
    place = place_in(tmp_path)
    kind.create(place, SPEC)
    job_id = load_rows(kind.open(place))
    with kind.find(place) as found:
        assert found.give_back is None
        assert found.sight.job_ids() == {job_id}


def test_a_table_whose_catalog_was_lost_is_found_and_given_back(kind: TableKind, tmp_path: Path) -> None:
    place = place_in(tmp_path)
    kind.create(place, SPEC)
    job_id = load_rows(kind.open(place))
    (tmp_path / "catalog.db").unlink(missing_ok=True)
    with kind.find(place) as found:
        assert (found.give_back is not None) == bool(kind.catalog)
        head = found.sight.read_head(job_id)
        assert head is not None
        assert found.sight.bills.read(job_id, head).seq == 1
        if found.give_back is not None:
            with pytest.raises(ConflictError):
                kind.check_new(place)
            found.give_back()
    assert kind.open(place).read_head(job_id) == head


def test_a_dropped_table_keeps_its_files_and_its_name_is_free(kind: TableKind, tmp_path: Path) -> None:
    place = place_in(tmp_path)
    kind.create(place, SPEC)
    load_rows(kind.open(place))
    files = kind.open(place).files()
    kind.drop(place)
    assert all((Path(place.location) / file).is_file() for file in files)
    kind.create(replace(place, location=str(tmp_path / "elsewhere")), SPEC)


def test_a_table_of_lading_is_owned(kind: TableKind, tmp_path: Path) -> None:
    place = place_in(tmp_path)
    kind.create(place, SPEC)
    load_rows(kind.open(place))
    kind.check_owned(open_store(place.location))


def test_an_empty_text_as_a_partition_value_comes_back_as_the_kind_says(kind: TableKind, tmp_path: Path) -> None:
    place = place_in(tmp_path)
    kind.create(place, SPEC)
    rows = pa.Table.from_pylist([{"id": 1, "city": "", "size": None}], schema=ROWS.schema)
    load_rows(kind.open(place), rows)
    assert kind.open(place).scan()["city"].to_pylist() == [None if kind.empty_partition_is_null else ""]
