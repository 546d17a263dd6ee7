"""The head of a job as an Iceberg table keeps it, and whether the table was rolled back behind it.

The head is the table property `lading.head.<job id>`, set in the same commit as the snapshot it names. Properties do
not expire, but neither do they go back when somebody rolls the table back. So the property also names the snapshot S
of its commit and S's sequence number. Sequence numbers only ever grow and a parent's is lower than its child's; so on
the way from the current snapshot up to its ancestors

- S is met: S is part of the table;
- a snapshot with a lower number is met first, or there is no current snapshot, or its number is lower: S is not part
  of the table any more, it was rolled back;
- the way ends before either, because somebody expired the snapshots between: S expired as a part of the table, or
  the table was rolled back and others committed on top of that. The older metadata files tell (`ancestry.py`); where
  those are gone too, S is taken as a part.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from lading.commit.rollback import ADVICE
from lading.errors import RecordError, RolledBackError
from lading.ids import JobId, Token
from lading.model.bill import Bill, Head

PREFIX = "lading.head."
VERSION = 1

SUMMARY_JOB = "lading.job"
SUMMARY_SEQ = "lading.seq"
SUMMARY_TOKEN = "lading.token"  # noqa: S105 - a commit's token is no secret
SUMMARY_BILL = "lading.bill"


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A head and the snapshot that was committed with it."""

    head: Head
    snapshot_id: int
    sequence_number: int
    location: str = ""
    """Where the table was, and with it the bill: ALTER TABLE … SET LOCATION moves the one and not the other."""


def head_property(job_id: JobId) -> str:
    """The name of the table property."""
    return f"{PREFIX}{job_id}"


def render_anchor(anchor: Anchor) -> str:
    """The value of the table property."""
    body = {
        "v": VERSION,
        "seq": anchor.head.seq,
        "token": anchor.head.token,
        "snapshot": anchor.snapshot_id,
        "sequence": anchor.sequence_number,
        "location": anchor.location,
    }
    return json.dumps(body, separators=(",", ":"))


def parse_anchor(name: str, text: str) -> Anchor:
    """Read the value of a head property."""
    try:
        body = json.loads(text)
        version = body["v"]
        numbers = {key: body[key] for key in ("seq", "token", "snapshot", "sequence")}
    except (ValueError, KeyError, TypeError) as error:
        raise _unreadable(name, text) from error
    if not isinstance(version, int) or not all(type(number) is int for number in numbers.values()):
        raise _unreadable(name, text)
    if version > VERSION:
        msg = f"The table property {name} has form {version}; this Lading reads forms up to {VERSION}"
        raise RecordError(msg, left="Nothing was changed.", todo="Use the newer Lading that wrote it.")
    head = Head(seq=numbers["seq"], token=Token(numbers["token"]))
    return Anchor(
        head=head,
        snapshot_id=numbers["snapshot"],
        sequence_number=numbers["sequence"],
        location=str(body.get("location", "")),
    )


def find_anchor(metadata: TableMetadata, job_id: JobId) -> Anchor | None:
    """The head of a job as the table has it, without any check."""
    name = head_property(job_id)
    text = metadata.properties.get(name)
    return None if text is None else parse_anchor(name, text)


def all_anchors(metadata: TableMetadata) -> dict[JobId, Anchor]:
    """The heads of all jobs."""
    heads = {name: text for name, text in metadata.properties.items() if name.startswith(PREFIX)}
    return {JobId(name.removeprefix(PREFIX)): parse_anchor(name, text) for name, text in heads.items()}


def commit_of(snapshot: Snapshot) -> tuple[str, Head] | None:
    """The job that made a snapshot, and its commit; None when it is another's."""
    told = summary_of(snapshot)
    if not {SUMMARY_JOB, SUMMARY_SEQ, SUMMARY_TOKEN} <= told.keys():
        return None
    return told[SUMMARY_JOB], Head(seq=int(told[SUMMARY_SEQ]), token=Token(int(told[SUMMARY_TOKEN])))


def has_token(metadata: TableMetadata, job_id: JobId, token: Token) -> bool:
    """Whether a commit with this token has landed, as far as the head and the snapshots that are kept can tell."""
    anchor = find_anchor(metadata, job_id)
    if anchor is not None and anchor.head.token == token:
        return True
    wanted = {SUMMARY_JOB: job_id, SUMMARY_TOKEN: str(token)}
    return any(wanted.items() <= summary_of(snapshot).items() for snapshot in metadata.snapshots)


def summary_of(snapshot: Snapshot) -> Mapping[str, str]:
    """The remarks in a snapshot's summary."""
    return snapshot.summary.additional_properties if snapshot.summary else {}


def summary_for(bill: Bill) -> dict[str, str]:
    """What a commit writes into its snapshot's summary, for people and for `find`."""
    return {
        SUMMARY_JOB: bill.job_id,
        SUMMARY_SEQ: str(bill.seq),
        SUMMARY_TOKEN: str(bill.token),
        SUMMARY_BILL: bill.head.bill_name,
    }


def rolled_back(job_id: JobId, anchor: Anchor, where: str) -> RolledBackError:
    """The error, with what to do."""
    msg = (
        f"The Iceberg table {where} was rolled back: job {job_id} had committed seq {anchor.head.seq} as snapshot "
        f"{anchor.snapshot_id}, which is no ancestor of the current snapshot"
    )
    return RolledBackError(
        msg,
        left="Nothing was read or written.",
        todo=ADVICE,
        job_id=job_id,
        once=anchor.head.seq,
    )


def _unreadable(name: str, text: str) -> RecordError:
    msg = f"The table property {name} is not a head: {text[:100]!r}"
    return RecordError(
        msg, left="Nothing was changed.", todo="Restore the property from an older metadata file of the table."
    )
