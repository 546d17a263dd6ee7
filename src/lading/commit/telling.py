"""What one incarnation of a job has told its listeners, and what the next bill says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from lading.commit.listening import Moment, advance_listening
from lading.commit.protocols import Listeners
from lading.model.batch import StagedFile
from lading.model.bill import Bill
from lading.model.notices import Listening, ListeningSummary, ListenRule, Notice, NoticeKey
from lading.model.positions import Positions


def has_due_state(base: Bill) -> bool:
    """Whether the watermark has reached something that the job keeps: a window closes, also when nothing is read."""
    state, watermark = base.state, base.positions.watermark_us
    return state is not None and state.next_us is not None and watermark is not None and state.next_us <= watermark


class Teller:
    """The only state is what listeners have taken and the newest bill still calls pending.

    Lost with the process: then they are told again, with the same key.
    """

    def __init__(self, rule: ListenRule | None, listeners: Listeners | None) -> None:
        self._rule = rule
        self._listeners = listeners
        self._told = frozenset[NoticeKey]()

    @property
    def owes_answers(self) -> bool:
        """Whether listeners were told of something that the bills do not know yet."""
        return bool(self._told)

    def status(self, bill: Bill | None) -> ListeningSummary | None:
        """What people are shown of it; None: the job has no listeners."""
        if self._rule is None or bill is None:
            return None
        known = (bill.listening or Listening()).summary
        return replace(known, failures=self._listeners.failures if self._listeners is not None else ())

    def listening(
        self, base: Bill, files: Sequence[StagedFile], at: datetime, positions: Positions, *, is_written: bool
    ) -> Listening | None:
        """What the bill after `base` says, when its commit has these files and positions.

        `is_written`: the commit has all results that the watermark of `base` lets go. Otherwise no partition is done
        by the watermark: results for it may be among those.
        """
        hold = self._rule.hold_us if self._rule is not None else None
        # Results are written by the batch after the bill whose watermark lets them go.
        mark = positions.watermark_us if hold is None else base.positions.watermark_us
        mark = mark if is_written else None
        partitions = positions.partitions.values()
        moment = Moment(
            seq=base.seq + 1,
            at=at,
            watermark_us=None if mark is None else mark - (hold or 0),
            # A job with windows may have results to write after its last row.
            is_last=hold is None and bool(partitions) and all(each.finished for each in partitions),
        )
        return advance_listening(self._rule, base.listening, files, moment, self._told)

    def is_news(self, base: Bill, now: datetime) -> bool:
        """Whether partitions are done, or listeners have answered, so that a commit without rows says it."""
        after = self.listening(base, (), now, base.positions, is_written=not has_due_state(base))
        return after != base.listening

    def is_due(self, base: Bill, now: datetime) -> bool:
        """Whether a batch would tell somebody something, also when there is nothing to read."""
        if self._listeners is None:
            return False
        return self.is_news(base, now) or self._listeners.is_due(self._pending(base))

    def tell(self, bill: Bill) -> None:
        """Tell listeners what is pending after a bill that is the head of the table, and of no other."""
        if self._listeners is None:
            return
        notices = bill.listening.notices if bill.listening is not None else ()
        self._told &= frozenset(each.key for each in notices)
        if pending := self._pending(bill):
            # Dies in here: those that were told already are told again.
            self._told |= frozenset(self._listeners.tell(bill, pending))

    def _pending(self, bill: Bill) -> list[Notice]:
        notices = bill.listening.notices if bill.listening is not None else ()
        return [each for each in notices if each.key not in self._told]
