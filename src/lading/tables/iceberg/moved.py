"""A table whose location somebody changed: `ALTER TABLE … SET LOCATION`. Files that are there stay where they are."""

from __future__ import annotations

from dataclasses import dataclass

from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

from lading.errors import SchemaMismatchError
from lading.ids import JobId
from lading.model.s3_access import S3Access
from lading.storage.store import ObjectStore
from lading.tables.bills import FOLDER, bill_key
from lading.tables.iceberg.heads import Anchor, all_anchors
from lading.tables.iceberg.place import open_place
from lading.tables.manifest import KEY as CARD


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a table was when it was opened: its files and bills are written there."""

    location: str
    storage: ObjectStore


def location_of(metadata: TableMetadata) -> str:
    """The location of a table, without a slash at the end."""
    return metadata.location.rstrip("/")


def check_not_moved(table: Table, place: Place, what: str) -> None:
    """Refuse a commit after ALTER TABLE … SET LOCATION: the bill would stay where nobody looks for it.

    When the location changes between this look and the commit, the commit lands: its files are named where they are,
    and the head says where the bill is.
    """
    now = location_of(table.metadata)
    if now != place.location:
        msg = f"The Iceberg {what} has a new location since it was opened: {now} instead of {place.location}"
        raise SchemaMismatchError(
            msg,
            left="Nothing was written to the table.",
            todo="The job opens the table again, and the batch is staged at the new location.",
        )


def bring_bills(metadata: TableMetadata, place: Place, options: S3Access) -> None:
    """Copy bills that were left at an older location of the table. Nothing is deleted there."""
    for job_id, anchor in all_anchors(metadata).items():
        if anchor.location in ("", place.location):
            continue
        if place.storage.get(bill_key(job_id, anchor.head)) is None:
            _copy_bills(open_place(anchor.location, options), place.storage, job_id, anchor)


def _copy_bills(old: ObjectStore, new: ObjectStore, job_id: JobId, anchor: Anchor) -> None:
    # The head's bill comes last. Dies before it: the next opening copies again, and finds copies of the others.
    last = bill_key(job_id, anchor.head)
    keys = [CARD, *(key for key in old.keys(f"{FOLDER}/{job_id}/") if key != last), last]
    for key in keys:
        content = old.get(key)
        if content is not None:
            new.put_if_absent(key, content)
