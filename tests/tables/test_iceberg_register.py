"""A table whose catalog is lost: which of its metadata files is the table, and when nobody may say."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from uuid import uuid4

import pytest

from lading.errors import ConfigError, RolledBackError, TableNotFoundError
from lading.model.bill import Bill
from lading.model.job import Job
from lading.model.outcome import Landed
from lading.model.s3_access import S3Access
from lading.tables.iceberg.register import LostTable, find_lost_table, is_in_catalog, register_iceberg_table
from lading.tables.iceberg.table import IcebergTable
from tests.tables.drive import SPEC, ids, load, new_job, opening, put_and_commit, some_rows
from tests.tables.rig_iceberg import IcebergRig, iceberg_local, iceberg_s3
from tests.tables.s3_server import S3Server


class Wreck:
    """A table with an opening commit and some batches, and the words to break it."""

    def __init__(self, rig: IcebergRig, batches: int = 3) -> None:
        self.rig, self.job = rig, new_job()
        self.table: IcebergTable = rig.create("clicks", SPEC)
        self.bills = [opening(self.job)]
        assert isinstance(put_and_commit(self.table, self.bills[0]), Landed)
        for number in range(batches):
            self.bills.append(_batch(self.rig, self.table, self.job, self.bills[-1], number))

    @property
    def place(self) -> Path:
        return Path(self.table.location.removeprefix("file://"))

    @property
    def metadata(self) -> list[Path]:
        """The oldest first."""
        return sorted((self.place / "metadata").glob("*.metadata.json"))

    def manifest_list(self, file: Path) -> Path:
        body = json.loads(file.read_text())
        (found,) = [each for each in body["snapshots"] if each["snapshot-id"] == body["current-snapshot-id"]]
        return Path(found["manifest-list"].removeprefix("file://"))

    def find(self) -> LostTable:
        return find_lost_table(str(self.place), S3Access())


def _batch(rig: IcebergRig, table: IcebergTable, job: Job, base: Bill, number: int) -> Bill:
    bill = load(job, base, rig.stage(table, some_rows(number * 10, 2), "a"))
    assert isinstance(put_and_commit(table, bill), Landed)
    return bill


@pytest.fixture
def wreck(tmp_path: Path) -> Wreck:
    return Wreck(iceberg_local(tmp_path, None))


def refused(wreck: Wreck) -> str:
    with pytest.raises(ConfigError) as caught:
        wreck.find()
    assert caught.value.left == "Nothing was changed."
    return str(caught.value)


def test_the_newest_file_is_the_table(wreck: Wreck) -> None:
    lost = wreck.find()
    assert (lost.path, lost.skipped) == (str(wreck.metadata[-1]), ())
    assert lost.read_head(wreck.job.job_id) == wreck.bills[-1].head
    assert lost.read_head(new_job().job_id) is None
    assert lost.bills.read(wreck.job.job_id, wreck.bills[-1].head) == wreck.bills[-1]


def test_it_is_given_back(wreck: Wreck, tmp_path: Path) -> None:
    rig, name, options = wreck.rig, "lake.clicks", S3Access()
    wreck.table.close()
    (database,) = tmp_path.rglob("catalog.db")
    database.unlink()
    lost = wreck.find()
    assert not database.exists()
    assert not is_in_catalog(rig.catalog, name, options)
    register_iceberg_table(rig.catalog, name, lost, options)
    assert is_in_catalog(rig.catalog, name, options)
    again = rig.reopen("clicks")
    assert ids(rig, again) == [0, 1, 10, 11, 20, 21]
    _batch(rig, again, wreck.job, wreck.bills[-1], 3)
    assert wreck.find().path == str(wreck.metadata[-1])


def test_it_is_found_in_s3(tmp_path: Path, s3: S3Server) -> None:
    rig = iceberg_s3(tmp_path, s3)
    wreck = Wreck(rig, batches=1)
    lost = find_lost_table(wreck.table.location, rig.options)
    assert lost.read_head(wreck.job.job_id) == wreck.bills[-1].head
    register_iceberg_table(rig.catalog, "lake.again", lost, rig.options)
    assert ids(rig, rig.reopen("again")) == [0, 1]


@pytest.mark.parametrize("what", ["manifest list", "data"])
def test_a_commit_that_did_not_land_is_passed_over(wreck: Wreck, what: str) -> None:
    """A writer that knows that its commit did not land deletes its files; the metadata file stays."""
    if what == "data":
        wreck.table.discard(wreck.bills[-1].files)
    else:
        wreck.manifest_list(wreck.metadata[-1]).unlink()
    lost = wreck.find()
    assert (lost.path, lost.skipped) == (str(wreck.metadata[-2]), (str(wreck.metadata[-1]),))
    assert lost.read_head(wreck.job.job_id) == wreck.bills[-2].head


def test_nobody_goes_back_behind_a_state_that_landed(wreck: Wreck) -> None:
    gone = [wreck.manifest_list(file) for file in wreck.metadata[-2:]]
    for file in gone:
        file.unlink()
    told = refused(wreck)
    assert str(gone[0]) in told
    assert wreck.metadata[-2].name in told
    assert "Restore them" in told
    assert "never landed" not in told


def test_a_table_without_manifests_is_not_an_empty_one(wreck: Wreck) -> None:
    for file in (wreck.place / "metadata").glob("snap-*.avro"):
        file.unlink()
    assert "is not whole" in refused(wreck)


def test_an_empty_table_is_only_what_was_never_written_to(tmp_path: Path) -> None:
    rig = iceberg_local(tmp_path, None)
    place = rig.create("empty", SPEC).location.removeprefix("file://")
    assert find_lost_table(place, S3Access()).path.rpartition("/")[2].startswith("00000-")
    first = Wreck(rig, batches=0)
    first.manifest_list(first.metadata[-1]).unlink()
    assert f"move {first.metadata[-1].name} out" in refused(first)


def test_the_commit_of_somebody_else_is_not_passed_over(wreck: Wreck) -> None:
    wreck.rig.append_unrelated("clicks", some_rows(50, 2))
    wreck.manifest_list(wreck.metadata[-1]).unlink()
    assert wreck.metadata[-1].name in refused(wreck)


def test_an_older_file_that_is_gone_is_a_loss(wreck: Wreck) -> None:
    """The newest commit did not add it, so it is not missing because that commit was taken back."""
    manifests = sorted((wreck.place / "metadata").glob("*-m*.avro"), key=lambda file: file.stat().st_mtime_ns)
    manifests[0].unlink()
    assert str(manifests[0]) in refused(wreck)


def test_a_change_of_properties_is_not_passed_over(wreck: Wreck) -> None:
    """It has the snapshot of the state before it: what is missing was not added by it."""
    wreck.rig.stranger("clicks").transaction().set_properties({"owner": "ann"}).commit_transaction()
    wreck.manifest_list(wreck.metadata[-1]).unlink()
    assert wreck.metadata[-1].name in refused(wreck)


def test_of_two_whole_states_nobody_guesses(wreck: Wreck) -> None:
    newest = wreck.metadata[-1]
    twin = newest.with_name(f"{newest.name.partition('-')[0]}-twin.metadata.json")
    shutil.copy(newest, twin)
    assert "Several metadata files could be the newest" in refused(wreck)


def test_who_lost_a_race_is_passed_over(wreck: Wreck) -> None:
    newest = wreck.metadata[-1]
    body = json.loads(newest.read_text())
    for snapshot in body["snapshots"]:
        if snapshot["snapshot-id"] == body["current-snapshot-id"]:
            snapshot["manifest-list"] += ".gone"
    loser = newest.with_name(f"{newest.name.partition('-')[0]}-loser.metadata.json")
    loser.write_text(json.dumps(body))
    lost = wreck.find()
    assert (lost.path, lost.skipped) == (str(newest), (str(loser),))


def test_a_table_that_was_moved_is_told_from_where(wreck: Wreck, tmp_path: Path) -> None:
    old, new = wreck.place, tmp_path / "elsewhere"
    shutil.move(old, new)
    with pytest.raises(ConfigError, match="was moved or copied from") as caught:
        find_lost_table(str(new), S3Access())
    assert str(old) in str(caught.value)
    shutil.move(new, old)
    assert wreck.find().path == str(wreck.metadata[-1])


def test_two_tables_in_one_folder_are_told_apart(wreck: Wreck) -> None:
    body = json.loads(wreck.metadata[0].read_text())
    other = str(uuid4())
    first = wreck.metadata[0].with_name("00000-other.metadata.json")
    first.write_text(json.dumps({**body, "table-uuid": other}))
    told = refused(wreck)
    assert f"{other}: 00000-other.metadata.json" in told
    assert body["table-uuid"] in told


def test_a_file_that_cannot_be_read_is_told(wreck: Wreck) -> None:
    older, newest = wreck.metadata[1], wreck.metadata[-1]
    older.write_text("{")  # Nobody needs it.
    assert wreck.find().path == str(newest)
    newest.write_text(newest.read_text()[:100])
    assert f"move {newest.name} out" in refused(wreck)


def test_a_manifest_that_cannot_be_read_is_told(wreck: Wreck) -> None:
    file = wreck.manifest_list(wreck.metadata[-1])
    file.write_bytes(b"no list")
    assert str(file) in refused(wreck)


def test_a_table_that_was_rolled_back_says_so(wreck: Wreck) -> None:
    wreck.rig.restore_older("clicks", 1)
    with pytest.raises(RolledBackError):
        wreck.find().read_head(wreck.job.job_id)


def test_nothing_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match="no metadata file"):
        find_lost_table(str(tmp_path), S3Access())


def test_a_folder_may_have_a_percent_sign(tmp_path: Path) -> None:
    """PyIceberg takes locations letter by letter: nothing of them is quoted."""
    wreck = Wreck(iceberg_local(tmp_path / "a%41", None))
    assert wreck.find().read_head(wreck.job.job_id) == wreck.bills[-1].head
