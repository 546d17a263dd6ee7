"""What a restart needs, inside an Iceberg commit: the table property `lading.resume.<job id>`.

It is set by the same commit as the head (`head.py`), lives in the table's metadata, and does not expire with snapshots.
Packed, because every metadata file holds it.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Callable

from pyiceberg.table.metadata import TableMetadata

from lading.errors import RecordError
from lading.ids import JobId
from lading.model.bill import Bill, Head, resume_copy
from lading.model.codec import parse_bill, render_bill
from lading.tables.iceberg.heads import PREFIX as HEAD_PREFIX

PREFIX = "lading.resume."


class PropertyCopies:
    """Implements ResumeCopies on the metadata that a function loads."""

    def __init__(self, load: Callable[[], TableMetadata]) -> None:
        self._load = load

    def put(self, bill: Bill) -> None:
        """Nothing: the copy is a part of the commit, see `resume_properties`."""

    def read(self, job_id: JobId, head: Head) -> Bill | None:
        return find_copy(self._load(), job_id, head)


def resume_properties(bill: Bill) -> dict[str, str]:
    """The property that a commit sets besides its head."""
    packed = zlib.compress(render_bill(resume_copy(bill)), 6)
    return {f"{PREFIX}{bill.job_id}": base64.b64encode(packed).decode("ascii")}


def find_copy(metadata: TableMetadata, job_id: JobId, head: Head) -> Bill | None:
    """The copy that belongs to a head; None when the table has none, or one of another commit."""
    name = f"{PREFIX}{job_id}"
    text = metadata.properties.get(name)
    if text is None:
        return None
    try:
        content = zlib.decompress(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, zlib.error) as error:
        msg = f"The table property {name} cannot be read: {error}"
        todo = "Restore the property from an older metadata file of the table."
        raise RecordError(msg, left="Nothing was changed.", todo=todo) from error
    bill = parse_bill(content, where=f"table property {name}")
    return bill if bill.head == head else None


def job_ids(metadata: TableMetadata) -> set[JobId]:
    """The jobs that have a head in the table."""
    return {JobId(name.removeprefix(HEAD_PREFIX)) for name in metadata.properties if name.startswith(HEAD_PREFIX)}
