"""What a restart needs is kept by the table format itself; bills are history."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import deltalake
import pytest

from lading.errors import HeadLostError
from lading.model.bill import Bill, resume_copy
from lading.model.codec import parse_bill, render_bill
from lading.model.outcome import Landed
from lading.tables.maintenance import CarePolicy
from tests.tables.drive import SPEC, START, driver, load, new_job, opening, put_and_commit, some_rows
from tests.tables.rig_delta import delta_local
from tests.tables.rig_iceberg import iceberg_local

HISTORY = {"ranges", "gaps", "files", "quarantine", "first_error", "tally"}
"""Fields of a bill that tell of one commit and that no restart reads."""


def some_bill(tmp_path: Path) -> Bill:
    rig, job = delta_local(tmp_path, None), new_job()
    table, first = rig.create("clicks", SPEC), opening(job)
    put_and_commit(table, first)
    return load(job, first, rig.stage(table, some_rows(0, 3), "a"))


def test_the_copy_has_every_field_but_those_of_the_one_commit(tmp_path: Path) -> None:
    bill = some_bill(tmp_path)
    copy = parse_bill(render_bill(resume_copy(bill)), where="a copy")
    same = {field.name for field in fields(Bill) if getattr(copy, field.name) == getattr(bill, field.name)}
    assert {field.name for field in fields(Bill)} - same <= HISTORY


def test_a_delta_head_without_bill_and_copy_stops_the_start_and_changes_nothing(tmp_path: Path) -> None:
    """Commits of versions that kept no copy, after another engine's clean-up."""
    rig, job = delta_local(tmp_path, None), new_job()
    table, lost = rig.create("clicks", SPEC), opening(job)
    assert isinstance(table.commit(None, (), lost), Landed)
    versions = rig.versions("clicks")
    with pytest.raises(HeadLostError):
        driver(rig, rig.reopen("clicks"), job).start()
    assert rig.versions("clicks") == versions
    assert table.read_head(job.job_id) == lost.head


def test_few_copies_stand_in_the_log_folder_and_other_readers_pass_over_them(tmp_path: Path) -> None:
    rig, job = delta_local(tmp_path, None), new_job()
    table = rig.create("clicks", SPEC)
    loader = driver(rig, table, job)
    loader.start()
    for _ in range(5):
        bill = loader.run_batch()
    folder = tmp_path / "lake" / "clicks" / "_delta_log" / "_lading" / job.job_id
    assert len(list(folder.iterdir())) == 6
    rig.look_after(table, job.job_id, CarePolicy(), START + timedelta(days=9))
    assert bill is not None
    assert [path.name for path in folder.iterdir()] == [bill.head.bill_name]
    other = deltalake.DeltaTable(str(tmp_path / "lake" / "clicks"))
    assert other.version() == 6
    other.create_checkpoint()
    assert (
        sum(deltalake.DeltaTable(str(tmp_path / "lake" / "clicks")).get_add_actions()["num_records"].to_pylist()) == 15
    )
    rig.others_maintain("clicks")
    assert [path.name for path in folder.iterdir()] == [bill.head.bill_name]


def test_the_property_of_an_iceberg_table_stays_small(tmp_path: Path) -> None:
    rig, job = iceberg_local(tmp_path, None), new_job()
    loader = driver(rig, rig.create("clicks", SPEC), job)
    loader.start()
    for _ in range(3):
        loader.run_batch()
    text = rig.stranger("clicks").properties[f"lading.resume.{job.job_id}"]
    assert len(text) < 1500
