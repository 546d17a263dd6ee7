"""Making and opening Paimon tables."""

from __future__ import annotations

from lading.errors import TableExistsError
from lading.model.table import TableSpec
from lading.tables.paimon.library import require_library
from lading.tables.paimon.schema import SCHEMA, new_schema, schema_key
from lading.tables.paimon.table import PaimonTable
from lading.tables.probe import check_put_if_absent
from lading.tables.storage import Storage, StorageOptions, open_storage


def create_paimon_table(location: str, spec: TableSpec, options: StorageOptions | None = None) -> PaimonTable:
    """Make an empty table and open it. Raises TableExistsError when one is there."""
    require_library()
    how = options or StorageOptions()
    storage = open_storage(location, how)
    _, content = new_schema(spec)
    if next(iter(storage.keys(SCHEMA)), None) is not None:
        raise _exists(storage)
    check_put_if_absent(storage, how)
    # Dies before it: there is no table. Dies after it: the table is whole.
    if not storage.put_if_absent(schema_key(0), content):
        raise _exists(storage)
    return PaimonTable(storage, how)


def open_paimon_table(location: str, options: StorageOptions | None = None) -> PaimonTable:
    """Open a table that is there."""
    require_library()
    how = options or StorageOptions()
    return PaimonTable(open_storage(location, how), how)


def _exists(storage: Storage) -> TableExistsError:
    msg = f"There is already a Paimon table at {storage.uri}"
    return TableExistsError(msg, left="It was not touched.", todo="Open it, or choose another location.")
