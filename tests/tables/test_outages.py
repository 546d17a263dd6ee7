"""A short outage of the store must not make a job believe that somebody else runs it."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from lading.errors import StorageError, UnknownOutcomeError
from lading.tables.delta.actions import LOG
from lading.tables.delta.table import DeltaLakeTable
from tests.tables.drive import SPEC, driver, ids, new_job
from tests.tables.faulty_storage import FaultyStorage
from tests.tables.rig_delta import delta_local


def test_a_job_is_not_fenced_by_its_own_commit_when_the_look_after_a_lost_answer_fails(tmp_path: Path) -> None:
    rig, job = delta_local(tmp_path, None), new_job()
    table = rig.create("clicks", SPEC)
    loader = driver(rig, table, job)
    loader.start()
    loader.run_batch()
    storage = cast("FaultyStorage", cast("DeltaLakeTable", table).storage)
    storage.under, storage.fault = f"{LOG}/", "lose"
    landed: list[str] = []
    storage.before_put = landed.append

    def away(_key: str) -> None:
        if landed:
            msg = "The store is away"
            raise StorageError(msg, unknown=False)

    storage.before_get = away
    with pytest.raises(UnknownOutcomeError, match="The store is away"):
        loader.run_batch()
    landed.clear()
    storage.before_get = lambda _key: None
    assert loader.run_batch() is not None  # The store is back: the head is a commit of this very incarnation.
    assert ids(rig, rig.reopen("clicks")) == list(range(9))
