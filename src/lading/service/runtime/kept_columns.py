"""The columns that a job fills, as they were when it was last opened: what somebody else did to them since.

A column that others add is none of the job's business. One that they drop or retype is: rows would be loaded without
it, or changed. The store remembers; a store that was lost, or a person who resumes the job, takes the table as it is.
"""

from __future__ import annotations

import json

import pyarrow as pa

from lading.errors import ConfigError, SqlError, TableError
from lading.jobs.record import JobRecord
from lading.model.field_types import wider_type
from lading.service.compile.compiled import Compiled
from lading.service.runtime.context import RunnerContext
from lading.store.protocols import MetadataStore
from lading.tables.base import LakeTable
from lading.tables.types import spark_type

CHANGED = "was changed by somebody else"


def columns_key(record: JobRecord) -> str:
    """Where the store remembers them."""
    return f"columns/{record.job_id}"


def check_columns(store: MetadataStore, record: JobRecord, schema: pa.Schema) -> None:
    """Refuse a table that lost a column of the job, or has it in another type that is not a wider one."""
    kept = store.read_setting(columns_key(record))
    if not kept:
        return
    now = {field.name: spark_type(field.type) for field in schema}
    changes, undo = [], []
    for name, kind in json.loads(kept).items():
        if name not in now:
            changes.append(f"column {name} ({kind}) was dropped")
            undo.append(f"ALTER TABLE {record.target} ADD COLUMN {name} {kind}")
        elif wider_type(kind, now[name]) != now[name]:
            changes.append(f"column {name} was {kind} and is {now[name]}")
    if not changes:
        return
    msg = f"Table {record.target} {CHANGED}: {'; '.join(changes)}"
    back = f"Put it back ({'; '.join(undo)}), or take" if undo else "Put it back, or take"
    todo = f"{back} the table as it is now: ALTER the job where it names the column, and RESUME it."
    raise TableError(msg, code="SchemaChanged", left="Nothing was read; the position is unchanged.", todo=todo)


def accept_columns(store: MetadataStore, record: JobRecord) -> None:
    """A person resumes a job that was paused for this: it takes the table as it is."""
    if record.reason is not None and CHANGED in record.reason.message:
        store.drop_setting(columns_key(record))


def keep_columns(store: MetadataStore, record: JobRecord, compiled: Compiled, schema: pa.Schema) -> None:
    """Remember what the job fills. Dies before it: what was remembered before, or nothing.

    A job that keeps rows between batches maps them to columns of its own first; those are in no table.
    """
    if compiled.stage is None:
        return
    filled = [each.name for each in compiled.stage.mapping.columns if each.expression is not None]
    text = json.dumps({name: spark_type(schema.field(name).type) for name in filled if name in schema.names})
    if store.read_setting(columns_key(record)) != text:
        store.write_setting(columns_key(record), text)


def compile_checked(tools: RunnerContext, record: JobRecord) -> tuple[Compiled, LakeTable]:
    """A job's parts, unless somebody changed its columns. What they are now is remembered."""
    store = tools.store
    try:
        compiled, table = tools.compile(record)
    except (ConfigError, SqlError):
        # Perhaps because of what somebody did to the table: then that is to be told.
        check_columns(store, record, tools.open_target(record).schema())
        raise
    try:
        check_columns(store, record, table.schema())
        keep_columns(store, record, compiled, table.schema())
    except BaseException:
        compiled.close()
        raise
    return compiled, table
