"""Which partitions are done after a commit, and who is to be told of it.

Everything follows from the bill before, the files of the batch and the time of the bill: a batch that is repeated
decides the same. Listeners are told after the commit, and what they took is left out of the next bill.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lading.commit.partitions import ends_us, partition_name
from lading.model.batch import StagedFile
from lading.model.notices import Listening, ListenRule, Notice, NoticeKey, OpenPartition

MOST_OPEN = 1000
"""Partitions that are followed at one time. Of more than that, those that were written to longest ago are let go."""
MOST_NOTICES = 1000
"""While so many wait for a listener, further partitions stay open."""
MOST_DONE = 100
"""Partitions that are remembered as done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The commit that is being drawn up."""

    seq: int
    at: datetime
    watermark_us: int | None = None
    is_last: bool = False
    """The source has nothing more, for ever: all that is open is done."""


def advance_listening(
    rule: ListenRule | None,
    before: Listening | None,
    files: Sequence[StagedFile],
    moment: Moment,
    told: Collection[NoticeKey] = (),
) -> Listening | None:
    """What is open and to be told after a commit with these files. `told`: what listeners have taken meanwhile."""
    if rule is None:
        return None
    old = before or Listening()
    pending = [each for each in old.notices if each.key not in told and each.listener in rule.listeners]
    written = _written(rule, old, files, moment)
    due = sorted(name for name, each in written.open.items() if _is_done(rule, each, moment))
    done, marked, still_open = list(written.done), 0, dict(written.open)
    for name in due:
        if len(pending) + len(rule.listeners) > MOST_NOTICES:
            break
        pending = _with_notices(pending, rule, name, still_open.pop(name), moment, is_again=name in done)
        done = [*(each for each in done if each != name), name][-MOST_DONE:]
        marked += 1
    return replace(written, open=still_open, notices=tuple(pending), done=tuple(done), marked=written.marked + marked)


def _written(rule: ListenRule, old: Listening, files: Sequence[StagedFile], moment: Moment) -> Listening:
    """With the partitions that the files of this commit are in."""
    known, late_rows, untracked = dict(old.open), old.late_rows, set[str]()
    for file in files:
        name = partition_name(rule.fields, file.partition)
        if name in old.done:
            late_rows += file.rows
        if rule.time is not None and ends_us(rule.fields, file.partition, rule.time) is None:
            untracked.add(name)
            continue
        before = known.get(name)
        known[name] = OpenPartition(
            rows=(before.rows if before else 0) + file.rows,
            seq=moment.seq,
            written_at=moment.at,
            folder=file.path.rpartition("/")[0],
            ends_us=None if rule.time is None else ends_us(rule.fields, file.partition, rule.time),
        )
    newest = sorted(known, key=lambda name: (known[name].seq, name))[-MOST_OPEN:]
    lost = len(known) - len(newest) + len(untracked)
    return replace(
        old, open={name: known[name] for name in sorted(newest)}, late_rows=late_rows, untracked=old.untracked + lost
    )


def _is_done(rule: ListenRule, each: OpenPartition, moment: Moment) -> bool:
    if moment.is_last:
        return True
    if moment.at - each.written_at < timedelta(seconds=rule.idle_s):
        return False
    if rule.time is None:
        return True
    return each.ends_us is not None and moment.watermark_us is not None and each.ends_us <= moment.watermark_us


def _with_notices(
    pending: Sequence[Notice], rule: ListenRule, name: str, each: OpenPartition, moment: Moment, *, is_again: bool
) -> list[Notice]:
    """A newer notice takes the place of one about the same partition that nobody took yet."""
    older = {notice.listener: notice for notice in pending if notice.partition == name}
    new = [
        Notice(
            listener=listener,
            partition=name,
            seq=each.seq,
            rows=each.rows + (older[listener].rows if listener in older else 0),
            folder=each.folder,
            marked_at=moment.at,
            is_again=is_again,
        )
        for listener in rule.listeners
    ]
    return [*(notice for notice in pending if notice.partition != name), *new]
