"""Rows of a table against what was sent. It knows nothing of the consumer that wrote them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is wrong. All zero: every record is there once, and each key in order."""

    rows: int
    loss: int
    """Records that were sent and are not there."""
    dup: int
    """Rows beyond the first of a record, but for one more where the generator may have sent it twice."""
    reorder: int
    """Rows whose number is lower than one of their key before them."""
    strange: int
    """Rows that nobody sent."""
    examples: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        return not (self.loss or self.dup or self.reorder or self.strange)


def verify_rows(
    rows: Iterable[tuple[str, int]],
    sent: Mapping[str, int],
    *,
    maybe_twice: Iterable[tuple[str, int]] = (),
    ordered: bool = True,
) -> Verdict:
    """Check `(key, n)` of every row. Give them in the order in which they were loaded, or say `ordered=False`.

    A table has no order of its own: sort by commit and by position within it, or by an arrival column of the consumer.
    """
    seen, newest, allowed = Counter[tuple[str, int]](), dict[str, int](), set(maybe_twice)
    counts, examples = Counter[str](), list[str]()

    def blame(kind: str, what: str, count: int = 1) -> None:
        counts[kind] += count
        if len(examples) < 10:
            examples.append(f"{kind} {what}")

    for key, n in rows:
        seen[key, n] += 1
        if not 0 <= n < sent.get(key, 0):
            blame("STRANGE", f"{key} {n}")
        elif seen[key, n] > 1 + ((key, n) in allowed):
            blame("DUP", f"{key} {n}")
        elif ordered and seen[key, n] == 1 and n < newest.get(key, -1):
            blame("REORDER", f"{key} {n} after {newest[key]}")
        newest[key] = max(n, newest.get(key, -1))
    for key, count in sent.items():
        missing = [n for n in range(count) if not seen[key, n]]
        if missing:
            blame("LOSS", f"{key} {missing[:5]}", len(missing))
    return Verdict(
        rows=sum(seen.values()),
        loss=counts["LOSS"],
        dup=counts["DUP"],
        reorder=counts["REORDER"],
        strange=counts["STRANGE"],
        examples=tuple(examples),
    )


def verify_table(
    rows: Iterable[Mapping[str, Any]], sent: Mapping[str, int], *, maybe_twice: Iterable[tuple[str, int]] = ()
) -> Verdict:
    """The same for rows as mappings with `key` and `n`, whatever their types and their order."""
    pairs = ((str(row["key"]), int(row["n"])) for row in rows)
    return verify_rows(pairs, sent, maybe_twice=maybe_twice, ordered=False)
