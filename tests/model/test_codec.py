"""Bills through write and read: complete, strict, versioned."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.errors import RecordError
from lading.ids import Token
from lading.model.bill import Bill, Head
from lading.model.codec import VERSION, parse_bill, render_bill
from lading.model.positions import PartitionState, Positions
from lading.model.tally import RowCounts, Tally
from tests.model.samples import FULL_BILL

GOLDEN = Path(__file__).parent.parent / "golden"


def default_of(field: Any) -> Any:
    if field.default is not MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not MISSING else MISSING


def records_in(value: Any) -> list[Any]:
    if is_dataclass(value):
        return [value, *(found for field in fields(value) for found in records_in(getattr(value, field.name)))]
    if isinstance(value, dict):
        return [found for item in value.values() for found in records_in(item)]
    return [found for item in value for found in records_in(item)] if isinstance(value, tuple) else []


def test_the_sample_sets_every_field_of_every_record_so_that_a_new_one_cannot_be_forgotten() -> None:
    unset: dict[tuple[str, str], bool] = {}
    for record in records_in(FULL_BILL):
        for field in fields(record):
            key = (type(record).__name__, field.name)
            unset[key] = unset.get(key, True) and getattr(record, field.name) == default_of(field)
    assert [key for key, is_unset in unset.items() if is_unset] == []


def test_every_field_survives_write_and_read() -> None:
    assert parse_bill(render_bill(FULL_BILL), where="here") == FULL_BILL


def test_every_field_is_in_the_file() -> None:
    body = json.loads(render_bill(FULL_BILL))["bill"]
    assert set(body) == {field.name for field in fields(Bill)}


@pytest.mark.parametrize("name", [field.name for field in fields(Bill)])
def test_a_bill_without_one_of_its_fields_is_refused(name: str) -> None:
    envelope = json.loads(render_bill(FULL_BILL))
    del envelope["bill"][name]
    with pytest.raises((RecordError, RecordError)):
        parse_bill(json.dumps(envelope).encode(), where="here")


def without_state(bill: Bill) -> Bill:
    """As bills were before there were watermarks and state."""
    states = {name: replace(s, event_us=None, read_at=None) for name, s in bill.positions.partitions.items()}
    tally, totals = (
        replace(each, ahead=0, rows=replace(each.rows, total=sum(_old_fates(each.rows)), late=0, duplicate=0))
        for each in (bill.tally, bill.totals)
    )
    positions = replace(bill.positions, partitions=states, watermark_us=None)
    old = replace(bill, positions=positions, tally=tally, totals=totals, state=None, listening=None, joined=())
    return replace(old, replayed_through=0)


def _old_fates(rows: RowCounts) -> tuple[int, int, int]:
    return rows.loaded, rows.unselected, rows.error


OLD_BILL = without_state(FULL_BILL)


def test_the_recorded_bill_of_the_first_version_is_still_read() -> None:
    states = OLD_BILL.positions.partitions
    old = {**states, 'päth "with" quotes': PartitionState(at="")}  # It knew no partitions that were given up.
    first = replace(OLD_BILL, positions=replace(OLD_BILL.positions, partitions=old))
    assert parse_bill((GOLDEN / "bill-v1.json").read_bytes(), where="golden") == first


def test_the_recorded_bill_of_the_second_version_is_still_read() -> None:
    assert parse_bill((GOLDEN / "bill-v2.json").read_bytes(), where="golden") == OLD_BILL


def test_the_recorded_bill_of_the_third_version_is_still_read_without_what_nothing_filled() -> None:
    assert parse_bill((GOLDEN / "bill-v3.json").read_bytes(), where="golden") == OLD_BILL


def test_the_recorded_bill_of_the_fourth_version_is_still_read() -> None:
    assert parse_bill((GOLDEN / "bill-v4.json").read_bytes(), where="golden") == OLD_BILL


def test_the_recorded_bill_of_the_fifth_version_is_still_read_as_one_that_took_up_nothing() -> None:
    assert parse_bill((GOLDEN / "bill-v5.json").read_bytes(), where="golden") == replace(FULL_BILL, replayed_through=0)


def test_the_recorded_bill_of_this_version_is_read() -> None:
    assert parse_bill((GOLDEN / f"bill-v{VERSION}.json").read_bytes(), where="golden") == FULL_BILL


def test_a_newer_form_is_refused_with_what_to_do() -> None:
    envelope = json.loads(render_bill(FULL_BILL)) | {"version": VERSION + 1}
    with pytest.raises(RecordError, match="newer Lading"):
        parse_bill(json.dumps(envelope).encode(), where="s3://lake/t/_lading/j/1-2.json")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff\xfe", b'{"lading": "bill"}', b"null"])
def test_what_is_not_a_bill_is_refused_and_named(content: bytes) -> None:
    with pytest.raises(RecordError, match="here"):
        parse_bill(content, where="here")


def test_a_bill_that_was_changed_by_hand_is_refused() -> None:
    envelope = json.loads(render_bill(FULL_BILL))
    envelope["bill"]["totals"]["rows"]["loaded"] += 1
    with pytest.raises(RecordError, match="inconsistent"):
        parse_bill(json.dumps(envelope).encode(), where="here")


@pytest.mark.parametrize(
    "changes",
    [
        {"tally": replace(FULL_BILL.tally, rows=RowCounts(total=11, loaded=7, unselected=2, error=1))},
        {
            "state": None,
            "joined": (),
            "tally": replace(FULL_BILL.tally, rows=RowCounts(total=11, loaded=8, unselected=2, error=1)),
        },
        {"tally": replace(FULL_BILL.tally, written=8)},
        {"tally": replace(FULL_BILL.tally, data_files=2)},
        {"tally": replace(FULL_BILL.tally, data_bytes=98)},
        {"totals": Tally()},
        {"totals": replace(FULL_BILL.totals, received_bytes=1)},
        {"replaces": None},
        {"replaces": Head(seq=2**41, token=Token(1))},
        {"accepts_rollback": False},
        {"token": Token(0)},
        {"token": Token(2**63)},
        {"positions": Positions(partitions={"shard-1": PartitionState(at="19")})},
    ],
)
def test_a_bill_that_contradicts_itself_is_neither_written_nor_read(changes: dict[str, Any]) -> None:
    with pytest.raises(RecordError):
        render_bill(replace(FULL_BILL, **changes))


texts = st.text(max_size=20)
states = st.builds(
    PartitionState,
    at=texts,
    finished=st.booleans(),
    parents=st.lists(texts, max_size=2).map(tuple),
    marks=st.dictionaries(texts, texts, max_size=2),
)


@given(partitions=st.dictionaries(texts, states, max_size=5), name=texts, token=st.integers(1, 2**63 - 1))
def test_any_positions_survive(partitions: dict[str, PartitionState], name: str, token: int) -> None:
    bill = replace(
        FULL_BILL,
        job_name=name,
        token=Token(token),
        positions=Positions(incarnation=name, partitions=partitions),
        ranges=(),
    )
    assert parse_bill(render_bill(bill), where="here") == bill
