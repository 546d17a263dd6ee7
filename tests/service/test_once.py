"""A job that loads what is there once, and ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from lading.service.runtime.context import OpenJob
from tests.console.local import LocalLading
from tests.service.test_rollbacks import LocalDesk


def test_a_job_whose_process_died_after_its_last_commit_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It loaded everything, said so in the table, and stayed RUNNING for ever."""
    desk = LocalDesk(tmp_path)
    desk.table()
    desk.put_orders("a.csv", 0, 3)
    desk.create(properties='"s3.ingestion_mode"="ONCE"')
    with monkeypatch.context() as died:
        died.setattr(OpenJob, "is_complete", lambda self, bill: False)  # What would have been said next is not.
        desk.run()
    assert (desk.show("Status"), desk.ids()) == ("RUNNING", [0, 1, 2])
    desk.lading.close()
    with LocalLading(tmp_path / "home") as lading:
        lading.run()
        assert lading.job("j", include_final=True).state.value == "FINISHED"
