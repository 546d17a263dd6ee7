"""The card beside a table, and what one place is."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lading.errors import RecordError
from lading.storage.store import ObjectStore, open_store
from lading.tables.manifest import KEY, TableCard, is_same_place, leave_card, read_card, settle_place
from tests.tables.drive import SPEC

CARD = TableCard(database="shop", name="orders", format="delta", spec=SPEC, created_at=datetime(2026, 3, 2, tzinfo=UTC))


@pytest.fixture
def storage(tmp_path: Path) -> ObjectStore:
    return open_store(str(tmp_path))


def written(storage: ObjectStore) -> dict[str, object]:
    content = storage.get(KEY)
    assert content is not None
    found: dict[str, object] = json.loads(content)
    return found


def write(storage: ObjectStore, body: object) -> None:
    storage.delete([KEY])
    storage.put_if_absent(KEY, json.dumps(body).encode())


def test_what_is_written_is_read(storage: ObjectStore) -> None:
    assert read_card(storage) is None
    leave_card(storage, CARD)
    assert read_card(storage) == CARD
    assert written(storage)["version"] == 1


def test_a_table_that_was_made_anew_has_its_own_card(storage: ObjectStore) -> None:
    leave_card(storage, CARD)
    other = TableCard(database="shop", name="later", format="iceberg", created_at=CARD.created_at)
    leave_card(storage, other)
    assert read_card(storage) == other


def test_the_first_cards_were_bare(storage: ObjectStore) -> None:
    leave_card(storage, CARD)
    write(storage, written(storage)["table"])
    assert read_card(storage) == CARD


def test_a_newer_form_is_refused_by_the_name_of_the_file(storage: ObjectStore) -> None:
    write(storage, {"lading": "table", "version": 2, "table": {"what": "ever"}})
    with pytest.raises(RecordError, match=r"_lading/table\.json has form 2; this Lading reads forms up to 1"):
        read_card(storage)


def test_a_field_that_is_not_known_is_passed_over(storage: ObjectStore) -> None:
    leave_card(storage, CARD)
    body = written(storage)
    assert isinstance(body["table"], dict)
    body["table"]["color"] = "green"
    write(storage, body)
    assert read_card(storage) == CARD


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ([1], "does not tell of a table"),
        ({"lading": "bill", "version": 1, "bill": {}}, "does not tell of a table"),
        ({"lading": "table", "version": "1", "table": {}}, "no version or no body"),
        ({"lading": "table", "version": 1, "table": {"name": "x"}}, "other fields than it should"),
        ({}, "other fields than it should"),
    ],
)
def test_what_is_no_card_is_told_by_the_name_of_the_file(storage: ObjectStore, body: object, why: str) -> None:
    write(storage, body)
    with pytest.raises(RecordError, match=why) as caught:
        read_card(storage)
    assert caught.value.what.startswith(f"{storage.uri}/{KEY} cannot be read: ")
    assert "bill" not in str(caught.value)


def test_a_format_that_is_not_known_is_refused(storage: ObjectStore) -> None:
    leave_card(storage, CARD)
    write(storage, json.loads(json.dumps(written(storage)).replace('"delta"', '"paper"')))
    with pytest.raises(RecordError, match="names a format that is not known: paper"):
        read_card(storage)


def test_one_place_has_many_spellings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "lake")
    here = str(tmp_path / "lake")
    for other in ("lake", "./x/../lake", f"file://{here}", f"{here}/", "link"):
        assert is_same_place(here, other), other
        assert is_same_place(here, settle_place(other)), other
    assert not is_same_place(here, f"{here}/orders")
    assert is_same_place("s3://lake/orders", "s3://lake/orders/")
    assert not is_same_place("s3://lake/orders", "lake/orders")


def test_a_place_is_kept_as_it_means_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert settle_place("lake/orders") == str(tmp_path / "lake" / "orders")
    assert settle_place("/x/../lake") == "/lake"
    assert settle_place("/lake/orders/") == "/lake/orders"
    assert settle_place("s3://lake/orders/") == "s3://lake/orders"
