"""Which snapshots of joined tables a batch reads: those that the bill before it names.

A batch that is repeated joins the same rows. Before a batch that was never tried, a bill without rows may name newer
snapshots; a snapshot that is gone is replaced in the same way, because nothing that was committed depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence

from lading.commit.protocols import Joins
from lading.model.bill import Bill, BillKind, Head
from lading.model.joined import JoinedTable


def newer_tables(joins: Joins, base: Bill, tried: Head | None) -> tuple[JoinedTable, ...] | None:
    """What a bill has to name before the next batch runs; None: what it names is what is to be joined.

    A takeover may follow a batch that died, and a bill that was tried a batch that failed. Both go on with what the
    bill names, as long as it can be read.
    """
    newest = joins.newest()
    if base.joined == newest:
        return None
    may_have_run = base.kind is BillKind.TAKEOVER or base.head == tried
    if may_have_run and _tables(base.joined) == _tables(newest) and joins.can_read(base.joined):
        return None
    return newest


def _tables(joined: Sequence[JoinedTable]) -> list[tuple[str, str]]:
    return [(each.table, each.incarnation) for each in joined]
