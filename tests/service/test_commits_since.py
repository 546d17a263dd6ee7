"""Timeline and plots read the commits of their window, and not those of the whole life of a job."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lading.ids import Incarnation, JobId, Token
from lading.model.bill import BillKind
from lading.model.tally import Tally
from lading.service.views.since import entries_since
from lading.store.records import BillEntry

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Index:
    """One entry a minute, as the store pages through them; `read` counts them."""

    def __init__(self, count: int) -> None:
        self.entries = [_entry(seq, NOW - timedelta(minutes=count - 1 - seq)) for seq in reversed(range(count))]
        self.read = 0

    def turn(self, limit: int, before_seq: int | None) -> list[BillEntry]:
        found = [entry for entry in self.entries if before_seq is None or entry.seq < before_seq][:limit]
        self.read += len(found)
        return found


def _entry(seq: int, at: datetime) -> BillEntry:
    return BillEntry(
        job_id=JobId("be4c4000-0000-4000-8000-000000000001"),
        seq=seq,
        epoch=0,
        token=Token(seq),
        kind=BillKind.LOAD,
        incarnation=Incarnation("one"),
        planned_at=at,
        billed_at=at,
        tally=Tally(),
        totals=Tally(),
    )


@pytest.mark.parametrize("count", [1, 60, 99, 100, 101, 700, 3000])
@pytest.mark.parametrize("minutes", [1, 60, 150, 1000])
def test_all_of_the_window_is_found(count: int, minutes: int) -> None:
    index, start = Index(count), NOW - timedelta(minutes=minutes)
    found, is_cut = entries_since(index.turn, start, most=5000)
    assert not is_cut
    assert [entry for entry in found if entry.billed_at >= start] == [e for e in index.entries if e.billed_at >= start]


def test_an_hour_of_an_old_job_costs_what_it_costs_of_a_young_one() -> None:
    young, old = Index(200), Index(20_000)
    for index in (young, old):
        entries_since(index.turn, NOW - timedelta(minutes=60), most=5000)
    assert old.read == young.read == 100


def test_of_too_many_the_newest_are_found() -> None:
    index = Index(3000)
    found, is_cut = entries_since(index.turn, NOW - timedelta(minutes=2500), most=700)
    assert is_cut
    assert found == index.entries[:700]
