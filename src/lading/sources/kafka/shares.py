"""How the limits of a batch are shared among the partitions that have something to read."""

from __future__ import annotations

from collections.abc import Mapping


def share_rows(available: Mapping[int, int], limit: int) -> dict[int, int]:
    """Rows for each partition: all of them when they fit, else equal parts, and what some leave over to the others.

    Laws: nobody gets more than it has, nobody who has something gets nothing, and the sum is at most the limit or
    the number of partitions, whichever is more.
    """
    shares: dict[int, int] = {}
    left = max(limit, len(available))
    for place, (number, count) in enumerate(sorted(available.items(), key=lambda item: (item[1], item[0]))):
        shares[number] = min(count, left // (len(available) - place))
        left -= shares[number]
    return shares


def share_bytes(rows: Mapping[int, int], limit: int) -> dict[int, int]:
    """Bytes for each partition: half of the limit in equal parts, half by rows.

    How large records are is not known before they are read. A busy partition gets at least half of the batch, and one
    with few but large records is not starved.
    """
    total = sum(rows.values())
    equal = limit // 2 // len(rows) if rows else 0
    return {number: max(1, equal + limit // 2 * count // total) for number, count in rows.items()}
