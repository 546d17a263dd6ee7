"""Making and opening Paimon tables."""

from __future__ import annotations

from lading.errors import ConflictError
from lading.model.s3_access import S3Access
from lading.model.table import TableSpec
from lading.storage.store import ObjectStore, open_store
from lading.tables.paimon.library import require_library
from lading.tables.paimon.schema import SCHEMA, new_schema, schema_key
from lading.tables.paimon.table import PaimonTable
from lading.tables.probe import check_put_if_absent


def create_paimon_table(location: str, spec: TableSpec, options: S3Access | None = None) -> PaimonTable:
    """Make an empty table and open it. Raises ConflictError when one is there."""
    require_library()
    how = options or S3Access()
    storage = open_store(location, how)
    _, content = new_schema(spec)
    if next(iter(storage.keys(SCHEMA)), None) is not None:
        raise _exists(storage)
    check_put_if_absent(storage, how)
    # Dies before it: there is no table. Dies after it: the table is whole.
    if not storage.put_if_absent(schema_key(0), content):
        raise _exists(storage)
    return PaimonTable(storage, how)


def open_paimon_table(location: str, options: S3Access | None = None) -> PaimonTable:
    """Open a table that is there."""
    require_library()
    how = options or S3Access()
    return PaimonTable(open_store(location, how), how)


def _exists(storage: ObjectStore) -> ConflictError:
    msg = f"There is already a Paimon table at {storage.uri}"
    return ConflictError(
        msg, code="TableExists", left="It was not touched.", todo="Open it, or choose another location."
    )
