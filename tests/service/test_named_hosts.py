"""Hosts in the private network are reached only where somebody with ADMIN on everything wrote them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lading.errors import DeniedError
from lading.service.facade import Lading
from tests.service.test_reach import Names, kafka, opened


@pytest.fixture
def names() -> Names:
    return Names()


@pytest.fixture
def home(tmp_path: Path, names: Names, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lading]:
    with opened(tmp_path, names, monkeypatch, "") as lading:
        yield lading


@pytest.mark.parametrize("change", ['ALTER ROUTINE LOAD FOR r PROPERTIES("max_batch_interval"="7")', "UNDO"])
def test_an_admin_who_changes_something_else_vouches_for_no_host(
    home: Lading, names: Names, tmp_path: Path, change: str
) -> None:
    ann, ada = home.session("ann", "shop"), home.session("ada", "shop")
    ann.sql(kafka("evil.example:9092", ', "property.kafka_default_offsets"="OFFSET_BEGINNING"'))
    ann.sql("PAUSE ROUTINE LOAD FOR r")
    if change == "UNDO":
        ann.sql('ALTER ROUTINE LOAD FOR r PROPERTIES("max_batch_interval"="8")')
    ada.sql("UNDO ALTER ROUTINE LOAD FOR r" if change == "UNDO" else change)
    ann.sql("RESUME ROUTINE LOAD FOR r")
    names.known["evil.example"] = ("10.0.0.1",)
    home.close()
    with Lading(tmp_path / "home", resolver=names) as lading:
        lading.run()
        reason = lading.any_job("shop.r").reason
        assert "private network" in (reason.message if reason else "")
        lading.session("ada", "shop").sql(
            'ALTER ROUTINE LOAD FOR r FROM KAFKA("kafka_broker_list"="evil.example:9092")'
        )


def test_another_path_of_a_private_host_is_for_admins(home: Lading) -> None:
    listener = "'listener.x.type'='http', 'partition.idle_time_to_done'='1 minute', 'listener.x.url'="
    text = kafka().replace(" FROM", f" PROPERTIES({listener}'http://10.0.0.5:8080/hook') FROM")
    home.session("ada", "shop").sql(f"{text}; PAUSE ROUTINE LOAD FOR r")
    ann = home.session("ann", "shop")
    with pytest.raises(DeniedError, match="private network"):
        ann.sql("ALTER ROUTINE LOAD FOR r PROPERTIES('listener.x.url'='http://10.0.0.5:8080/admin/shutdown')")
    ann.sql("ALTER ROUTINE LOAD FOR r PROPERTIES('max_batch_interval'='7')")
