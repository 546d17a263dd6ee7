"""ALTER TABLE for Iceberg: one commit of a new schema. It makes no snapshot, and no property is touched: heads stay."""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

from lading.errors import ConfigError
from lading.model.table import Column, ColumnChange
from lading.tables.altering import WIDE_FAMILIES, changed, needed_changes
from lading.tables.iceberg.errors import is_locked, translated
from lading.tables.iceberg.handle import Handle
from lading.tables.iceberg.schema import check_name, iceberg_type, plain_arrow_schema

WIDENS = WIDE_FAMILIES


def alter_schema(handle: Handle, changes: Sequence[ColumnChange]) -> tuple[ColumnChange, ...]:
    """Those changes that were not made yet.

    Dies in here: the new schema is there or not. The same again changes nothing.
    """

    def attempt() -> Sequence[ColumnChange] | None:
        table = handle.load()
        needed = needed_changes(plain_arrow_schema(table.metadata.schema()), changes, WIDENS, handle.identifier)
        for change in needed:
            if change.is_new:
                check_name(change.name)
        if needed and not _commit(handle, table, needed):
            return None
        return needed

    return changed(handle.identifier, attempt)


def _commit(handle: Handle, table: Table, changes: Sequence[ColumnChange]) -> bool:
    """False: somebody committed at the same moment."""
    with translated(handle.what):
        try:
            transaction = table.transaction()
            with transaction.update_schema(case_sensitive=False) as update:
                for change in changes:
                    kind = iceberg_type(Column(name=change.name, type=change.type))
                    if not change.is_new:
                        update.update_column((change.name,), kind)
                        continue
                    # As one part: a text with a dot in it would be the way into a struct.
                    update.add_column((change.name,), kind, doc=change.comment or None)
                    if change.after:
                        update.move_after(change.name, change.after)
                    elif change.after is not None:
                        update.move_first(change.name)
            table._do_commit(updates=transaction._updates, requirements=transaction._requirements)  # noqa: SLF001
        except CommitFailedException:
            return False
        except ValueError as error:
            # Names within structs count, too: `a.b` beside a struct `a` that has a field `b`.
            msg = f"The Iceberg {handle.what} cannot have these columns: {error}"
            raise ConfigError(msg, left="Nothing was changed.", todo="Choose other names.") from error
        except Exception as error:
            if is_locked(error):
                return False
            raise
    return True
