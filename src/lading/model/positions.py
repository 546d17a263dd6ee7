"""Where a job stands in its source: partition → position, with the facts that decide what may be read next."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from lading.errors import ConfigError, SourceError, TrimmedError

FORGET_AFTER = timedelta(hours=1)
"""For so long listings must have lacked a finished partition before it is forgotten."""
LASTING = "lasting."
"""How the names of marks begin that stay when an operator moves the partition."""
BEGINNING = ""
"""The position before the first row of a partition. A concrete place, not a symbol that is resolved later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """How far one partition has been read."""

    at: str
    """Next to read, in the source's own text (an offset, a sequence number, a key). Never the last one read."""
    finished: bool = False
    """The source itself said that no more rows will ever come and all were read."""
    parents: tuple[str, ...] = ()
    """Partitions that must be finished, and that fact committed, before this one may be read."""
    marks: Mapping[str, str] = field(default_factory=dict)
    """Remarks of the source that a restart needs (for example the arrival time of the last committed record)."""
    given_up: bool = False
    """It is finished by the word of an operator or a policy, not of the source: rows may be left unread. Such a
    partition stays known for ever, so that it is never taken for a new one."""
    missing_since: datetime | None = None
    """Since when listings have lacked this finished partition. Listings can be old: one alone proves nothing."""
    event_us: int | None = None
    """The largest event time of the rows that were loaded from it, in microseconds since 1970. None: none yet, or the
    job has no watermark."""
    read_at: datetime | None = None
    """When a row with an event time was last read from it, or when it became known. Kept for jobs with a watermark
    only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions:
    """All partitions of a source that the job knows of."""

    incarnation: str = ""
    """What tells this source from another of the same name (creation time, topic id). Empty: the source has none."""
    partitions: Mapping[str, PartitionState] = field(default_factory=dict)
    watermark_us: int | None = None
    """No row with an earlier event time is expected any more; those that come are late. It rides with the positions,
    because it follows from what was read up to them: who goes back to older positions goes back to its watermark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPartition:
    """One partition as the source lists it now."""

    parents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A complete listing of a source: every page, or the source raised."""

    incarnation: str = ""
    partitions: Mapping[str, ListedPartition] = field(default_factory=dict)
    can_shrink: bool = True
    """Whether partitions of this source ever go. False: a listing that lacks one is an old listing."""
    lasting: tuple[str, ...] = ()
    """How the names of those begin that never go, where others do."""

    def can_go(self, name: str) -> bool:
        """Whether a partition may be gone when it is not listed."""
        return self.can_shrink and not name.startswith(self.lasting)


def doubtful_partitions(positions: Positions, listing: Listing, now: datetime) -> set[str]:
    """Partitions that would be lost, forgotten or overtaken if a listing that lacks them were believed.

    Overtaken: a new partition names a parent that nobody knows. It has expired, or the listing is too old to show it.
    """
    known = positions.partitions
    parents = {parent for name, listed in listing.partitions.items() if name not in known for parent in listed.parents}
    lost = {name for name, state in known.items() if not state.finished or _is_forgettable(name, state, listing, now)}
    return (lost | (parents - known.keys())) - listing.partitions.keys()


def _is_forgettable(name: str, state: PartitionState, listing: Listing, now: datetime) -> bool:
    since = state.missing_since
    return listing.can_go(name) and not state.given_up and since is not None and now - since >= FORGET_AFTER


def merge_listing(positions: Positions, listing: Listing, now: datetime) -> Positions:
    """Take new partitions in from their beginning and forget finished ones that have expired.

    A finished partition stays known while it is listed, and for an hour after it was: otherwise an old listing would
    make it look new, and it would be read again. One that was given up stays known for ever. A source that had nothing
    to tell it from others and now has (brokers were upgraded) is the same one.
    """
    if is_replaced(positions, listing.incarnation):
        msg = (
            f"The source was deleted and made again: its incarnation was {positions.incarnation!r} and is now "
            f"{listing.incarnation!r}"
        )
        raise SourceError(
            msg, left="Nothing was read.", todo="Move the job to the new source with ALTER, or make a new job."
        )
    kept: dict[str, PartitionState] = {}
    for name, state in positions.partitions.items():
        if name in listing.partitions:
            kept[name] = state if state.missing_since is None else replace(state, missing_since=None)
        elif state.finished:
            if not _is_forgettable(name, state, listing, now):
                kept[name] = state if state.missing_since else replace(state, missing_since=now)
        else:
            msg = f"Partition {name} is gone from the source and was read only up to {state.at!r}"
            raise TrimmedError(
                msg,
                left="The position is unchanged.",
                todo="Its unread rows are lost at the source; give the partition up with ALTER to go on without them.",
                partition=name,
                at=state.at,
                horizon=None,
            )
    known = replace(positions, incarnation=listing.incarnation, partitions=kept)
    return take_in_new(known, listing)


def is_replaced(positions: Positions, incarnation: str) -> bool:
    """Whether a source is another one than that which these positions are of."""
    return bool(positions.incarnation) and positions.incarnation != incarnation


def take_in_new(positions: Positions, listing: Listing) -> Positions:
    """Add partitions that the source lists and the job does not know, at their beginning."""
    new = {
        name: PartitionState(at=BEGINNING, parents=listed.parents)
        for name, listed in listing.partitions.items()
        if name not in positions.partitions
    }
    return replace(positions, partitions={**positions.partitions, **new})


def ready_partitions(base: Positions, merged: Positions) -> dict[str, PartitionState]:
    """Partitions that may be read now: not finished, and every parent finished *in the committed base* or unknown.

    A parent that neither the base nor the source knows has expired before the job began or was forgotten after it
    was finished; both mean that nothing of it is left to read.
    """
    return {
        name: state
        for name, state in merged.partitions.items()
        if not state.finished and all(_is_behind(base, merged, parent) for parent in state.parents)
    }


def _is_behind(base: Positions, merged: Positions, parent: str) -> bool:
    committed = base.partitions.get(parent)
    if committed is not None:
        return committed.finished
    return parent not in merged.partitions


def passed_partitions(positions: Positions) -> set[str]:
    """Finished partitions that nobody needs to hear of: what comes after them is being read, or they were given up."""
    known = positions.partitions
    read_after = {
        parent
        for state in known.values()
        if all(parent not in known or known[parent].finished for parent in state.parents)
        for parent in state.parents
    }
    return {name for name, state in known.items() if state.finished and (state.given_up or name in read_after)}


def move_positions(positions: Positions, changes: Mapping[str, str | None]) -> Positions:
    """Set partitions to new positions, as an operator asked. A moved partition is no longer finished.

    None gives a partition up: it counts as finished where it is, and stays known for ever.
    """
    unknown = sorted(set(changes) - set(positions.partitions))
    if unknown:
        msg = f"The job does not read partition {', '.join(unknown)}"
        raise ConfigError(
            msg, left="Nothing was changed.", todo=f"It reads: {', '.join(sorted(positions.partitions)) or 'none'}."
        )
    partitions = dict(positions.partitions)
    for name, at in changes.items():
        partitions[name] = (
            replace(
                partitions[name], finished=True, given_up=partitions[name].given_up or not partitions[name].finished
            )
            if at is None
            else replace(
                partitions[name],
                at=at,
                finished=False,
                marks={mark: said for mark, said in partitions[name].marks.items() if mark.startswith(LASTING)},
                given_up=False,
                missing_since=None,
            )
        )
    return replace(positions, partitions=partitions)


def reset_event_times(positions: Positions, moved: Collection[str]) -> Positions:
    """What an operator's move means for event time: the rows that come now may be of any.

    The watermark begins again, with what is known of the partitions that were not moved.
    """
    partitions = {
        name: replace(state, event_us=None, read_at=None) if name in moved else state
        for name, state in positions.partitions.items()
    }
    return replace(positions, partitions=partitions, watermark_us=None) if moved else positions


def in_step(positions: Positions, jump: timedelta) -> Positions:
    """Positions after the clock was set, by so much: nothing is idle or missing for longer because of it."""
    if not jump:
        return positions

    def moved(at: datetime | None) -> datetime | None:
        return None if at is None else at + jump

    return replace(
        positions,
        partitions={
            name: replace(state, read_at=moved(state.read_at), missing_since=moved(state.missing_since))
            for name, state in positions.partitions.items()
        },
    )
