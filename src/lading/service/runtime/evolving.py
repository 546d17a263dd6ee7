"""A table that grows with the source of a job: the change of its columns, and who is told.

The change is a commit of its own, before the rows that need it: dies after it, the table has columns that no row fills,
and the next batch reads the same rows and finds the columns there. So no row is ever loaded without its fields.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from lading.errors import ConfigError, StageError
from lading.failpoints import failpoint
from lading.jobs.events import TableEvolved
from lading.jobs.record import JobRecord
from lading.model.field_types import WHOLE
from lading.model.table import ColumnChange
from lading.service.runtime.context import RunnerContext
from lading.service.runtime.job_loop import save_event
from lading.service.runtime.loop_ports import LoopStore
from lading.store.records import AuditEntry
from lading.tables.base import LakeTable

ACTION = "EVOLVE TABLE"
_SHOWN = 20


def evolve(tools: RunnerContext, store: LoopStore, table: LakeTable, record: JobRecord, unseen: StageError) -> None:
    """Give the table the columns that rows need. Raises ConfigError when it cannot have them: the job pauses."""
    fields: Mapping[str, str] = unseen.facts["fields"]
    known = {name.lower(): name for name in table.schema().names}
    _check_names(record, fields)
    new = [name for name in fields if name.lower() not in known]
    _check_count(record, new, len(known), tools.max_columns)
    changes = [
        ColumnChange(name=name, type="bigint" if kind == WHOLE else kind, is_new=name.lower() not in known)
        for name, kind in fields.items()
    ]
    made = table.alter(changes)
    failpoint("evolve.altered")
    if not made:
        return  # Another job of the table was faster.
    told = f"table {record.target} changed: {', '.join(map(str, made))}"
    now = tools.clock.now()
    entry = AuditEntry(
        at=now,
        user="",
        action=ACTION,
        job_id=record.job_id,
        subject=str(record.full_name),
        facts={"table": record.target, "changes": json.dumps([str(change) for change in made])},
    )
    save_event(store, record.job_id, TableEvolved(message=told, at=now), entry)
    for watch in tools.watches:
        watch.evolved(record, made)


def _check_names(record: JobRecord, fields: Mapping[str, str]) -> None:
    strange = sorted(name for name, kind in fields.items() if not kind)
    if strange:
        msg = f"Rows have fields that cannot be columns of {record.target}: {_listed(strange)}"
        todo = (
            'Set "rescued_data_column" to a STRING column of the table, which takes them as JSON; names of columns are '
            "letters, digits and _, differ by more than upper and lower case, and are none of the format's own."
        )
        raise ConfigError(msg, left="Nothing was committed, and no column was added.", todo=todo)


def _check_count(record: JobRecord, new: list[str], known: int, most: int) -> None:
    if new and known + len(new) > most:
        msg = (
            f"Rows have {len(new)} fields that table {record.target} has no column for ({_listed(new)}); with them it "
            f"would have {known + len(new)} columns, and LADING_EVOLUTION_MAX_COLUMNS allows {most}"
        )
        todo = (
            "Are keys of the records data? Then set schema.evolution to NONE with a rescued_data_column; or raise it."
        )
        raise ConfigError(msg, left="Nothing was committed, and no column was added.", todo=todo)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(repr(name) for name in names[:_SHOWN]) + more
