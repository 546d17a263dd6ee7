"""Edits of the keys of a job: changed, kept, forgotten, lost."""

from __future__ import annotations

from typing import Any

import pytest

from lading.errors import JobStateError, LadingError, SecretError, SqlError
from lading.service.security.vault import Vault, secret_key
from lading.testing.marked import secret
from tests.service.edit_rig import (
    ALTER,
    NEW,
    OLD,
    UNDO,
    Killed,
    job,
    password,
)
from tests.service.routine_fakes import Desk, bench

__all__ = ["bench", "job"]


def test_a_key_alone_can_be_changed_and_put_back(job: Desk) -> None:
    change = f'{ALTER} FROM KAFKA("property.sasl.password"="{NEW}")'
    job.sql(change)
    assert password(job) == NEW
    with pytest.raises(JobStateError, match="No properties or sql changed"):
        job.sql(change)
    job.restart()
    job.sql(UNDO)
    assert password(job) == OLD


def test_a_refused_alter_does_not_touch_the_keys_of_before(job: Desk) -> None:
    job.sql(f'{ALTER} PROPERTIES("max_batch_interval"="7") FROM KAFKA("property.sasl.password"="{NEW}")')
    with pytest.raises(SqlError):
        job.sql(f'{ALTER} PROPERTIES("max_batch_interval"="8") FROM KAFKA("property.sasl.password"="******")')
    with pytest.raises(LadingError):
        job.sql(f'{ALTER} WHERE nosuch = 1 FROM KAFKA("property.sasl.password"="{NEW}er")')
    assert password(job) == NEW
    job.sql(UNDO)
    assert password(job) == OLD


def test_keys_survive_the_end_of_the_process_in_the_middle_of_an_alter(
    job: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = f'{ALTER} PROPERTIES("max_batch_interval"="8") FROM KAFKA("property.sasl.password"="{NEW}")'

    def die(*parts: Any) -> Any:
        raise Killed

    monkeypatch.setattr(job.lading, "compile", die)
    with pytest.raises(Killed):
        job.sql(change)
    job.restart()
    assert password(job) == OLD
    job.sql(change)
    assert password(job) == NEW
    job.sql(UNDO)
    assert password(job) == OLD


def test_keys_that_no_undo_reaches_are_forgotten(job: Desk) -> None:
    record = job.lading.any_job("shop.j")
    slots = [record.secrets_slot]
    for word in (secret("one"), secret("two"), secret("three")):
        job.sql(f'{ALTER} FROM KAFKA("property.sasl.password"="{word}")')
        slots.append(job.lading.any_job("shop.j").secrets_slot)
    kept = [bool(job.lading.store.read_setting(secret_key(record.job_id, slot))) for slot in slots]
    assert kept == [False, False, True, True]
    job.sql(UNDO)
    assert password(job) == secret("two")


def test_keys_that_cannot_be_opened_any_more_can_be_given_anew(job: Desk) -> None:
    job.lading.vault = Vault([b"another key of thirty-two bytes!"])
    with pytest.raises(SecretError, match=r"ALTER has to name all of them: property\.sasl\.password"):
        job.sql(f'{ALTER} PROPERTIES("max_batch_interval"="7") FROM KAFKA("property.client.id"="x")')
    with pytest.raises(SecretError, match=r"give job shop\.j its keys again with ALTER"):
        job.sql(f'{ALTER} PROPERTIES("max_batch_interval"="7")')
    job.sql(f'{ALTER} FROM KAFKA("property.sasl.password"="{NEW}")')
    assert password(job) == NEW
    job.sql("RESUME ROUTINE LOAD FOR j")
    job.run()
    assert job.show()["State"] == "RUNNING"
    job.sql("PAUSE ROUTINE LOAD FOR j")
    with pytest.raises(SecretError):
        job.sql(UNDO)


def test_keys_that_cannot_be_opened_can_be_replaced_by_a_reference(job: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", NEW)
    job.lading.vault = Vault([b"another key of thirty-two bytes!"])
    job.sql(f'{ALTER} FROM KAFKA("property.sasl.password"="env:SHOP_KEY")')
    job.lading.compile(job.lading.any_job("shop.j"))
    assert job.world.specs[-1].client["sasl.password"] == NEW
