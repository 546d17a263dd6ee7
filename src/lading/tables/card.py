"""What a table is called and how it was made, beside the table: `<table>/_lading/table.json`.

The store has the same. It may be lost; with this the table can be given its name again, with what the format itself
does not keep, such as the lengths of texts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from lading.errors import RecordError, RecordUnreadableError
from lading.model.codec import decode, encode
from lading.model.table import TableSpec
from lading.tables.bills import FOLDER
from lading.tables.storage import Storage

KEY = f"{FOLDER}/table.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCard:
    """One table. It has no keys and no place: it is found where it lies."""

    database: str
    name: str
    format: str
    """delta or iceberg."""
    catalog: str = ""
    """Name of the Iceberg catalog; empty for tables that need none."""
    spec: TableSpec | None = None
    created_at: datetime


def leave_card(storage: Storage, card: TableCard) -> None:
    """Write it once. One that is there stays: the table was made by a statement that was cut off and run again."""
    storage.put_if_absent(KEY, json.dumps(encode(card), indent=1, ensure_ascii=False).encode())


def read_card(storage: Storage) -> TableCard | None:
    """The card of the table at a place; None when there is none. Raises RecordError for one that cannot be read."""
    content = storage.get(KEY)
    if content is None:
        return None
    where = f"{storage.uri}/{KEY}"
    try:
        card: TableCard = decode(TableCard, json.loads(content), where=where)
    except ValueError as error:
        msg = f"{where} is not JSON"
        raise RecordUnreadableError(msg, left="Nothing was changed.", todo="Restore it from a copy.") from error
    if card.format not in ("delta", "iceberg"):
        msg = f"{where} names a format that is not known: {card.format}"
        raise RecordError(msg, left="Nothing was changed.", todo="Restore it from a copy.")
    return card
