"""EXPLAIN CREATE JOB: a load is tried on its first rows, without Spark; nothing is written and no position moves."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import pyarrow as pa

from lading.model.batch import Limits
from lading.model.rows import FILE, ROW
from lading.pipeline.mapping import BAD, NOTE, UNREAD, UNSELECTED, WATERMARK
from lading.pipeline.nested import nested_values
from lading.pipeline.notes import bad_notes, parse_bad
from lading.pipeline.stage import Stage
from lading.pipeline.vector.arrays import UnsureError
from lading.pipeline.vector.evaluate import map_batch
from lading.service.compile.compiled import Compiled, Draft
from lading.service.compile.exploded import exploded_line
from lading.service.compile.sourced import AnyJob, source_of
from lading.service.result import Result, table
from lading.service.security.reach import job_rules
from lading.service.session import Session
from lading.service.statements.creating import draft_create
from lading.service.statements.made_tables import MadeTable, drafted_for_job
from lading.service.statements.reach import check_source
from lading.sql.expressions.vector_nodes import Refusal, VectorPlan
from lading.sql.statements.jobs import CreateJob, ExplainCreate
from lading.sql.statements.load_specs import load_with_secrets
from lading.sql.syntax.masking import mask
from lading.sql.syntax.render import render

ROWS = 1_000
_EXAMPLES, _REASONS, _READ_S = 3, 10, 5
_LONGEST = 40


@dataclass(slots=True)
class _Tried:
    """What would become of the first rows."""

    read: int = 0
    loaded: int = 0
    unselected: int = 0
    late: int = 0
    without_row: int = 0
    """Records that hold none."""
    bad: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)
    """Where each reason was met first."""
    values: dict[str, list[Any]] = field(default_factory=dict)
    not_tried: str = ""


def explain_create(session: Session, statement: ExplainCreate) -> Result:
    """Everything that CREATE checks, what fills each column, and the fates of the first rows."""
    asked = statement.create
    check_source(session, source_of(asked))
    if isinstance(asked, CreateJob):
        with drafted_for_job(session, asked) as (job, made):
            told = _table_lines(job if asked.creates is not None else None, made)
            return table(("What", "How"), [*told, *_tried(session, job, made)])
    return table(("What", "How"), _tried(session, asked, None))


def _tried(session: Session, asked: AnyJob, made: MadeTable | None) -> list[tuple[str, str]]:
    lading = session.lading
    record, asked = draft_create(session, asked, made.draft.table.schema().names if made is not None else ())
    # Nothing is kept of it, not for a moment: the secrets go from the statement to the source.
    written = load_with_secrets(asked)
    addresses = job_rules(lading.endpoints, record.job_id, written.source, is_trusted=session.is_admin)
    into = (made.draft.table, made.draft.entry) if made is not None else None
    draft = Draft(opened=(lading.followed(written), addresses), into=into)
    compiled, target = lading.compile(record, is_trial=True, draft=draft)
    with closing(compiled):
        target.writer_spec()
        return _lines(compiled.stage, _try(compiled))


def _table_lines(job: CreateJob | None, made: MadeTable | None) -> list[tuple[str, str]]:
    """What the statement would make, as one could write it. `job` is one that makes its table."""
    if job is None:
        return []
    if made is None:
        return [("table", f"{job.insert.table} is there already")]
    if made.draft.is_adopted:
        return [("table", f"{job.insert.table} would be the table that is at {made.draft.table.location}")]
    return [("table", render(mask(made.statement)))]


def _try(compiled: Compiled) -> _Tried:
    tried, stage = _Tried(), compiled.stage
    if stage is None:
        tried.not_tried = "there is no file yet to learn the columns from"
        return tried
    plan = stage.vector
    if isinstance(plan, Refusal):
        tried.not_tried = f"only Spark can do it ({plan.part}: {plan.why})"
        return tried
    driver = compiled.source.driver
    positions = driver.open(compiled.job.start)
    splits = driver.plan(positions.partitions, Limits(rows=ROWS, seconds=_READ_S))
    left = ROWS
    for batch in compiled.source.read(splits):
        if not isinstance(batch, pa.RecordBatch):
            tried.without_row += batch.skipped
        if not isinstance(batch, pa.RecordBatch) or not batch.num_rows:
            continue
        part = batch.slice(0, left)
        try:
            _judge(tried, plan, stage, part)
        except UnsureError as error:
            tried.not_tried = f"only Spark is sure of them ({error})"
            return tried
        left -= part.num_rows
        if left <= 0:
            break
    return tried


def _judge(tried: _Tried, plan: VectorPlan, stage: Stage, batch: pa.RecordBatch) -> None:
    rows = batch.num_rows
    # No batch is planned here that would have a time or a number.
    columns = {
        field.name: pa.nulls(rows, field.type) if field.name in stage.of_batch else batch.column(field.name)
        for field in stage.source
    }
    if stage.mapping.event is not None:
        columns[WATERMARK] = pa.nulls(batch.num_rows, pa.int64())
    mapped = map_batch(plan, pa.RecordBatch.from_pydict({**columns, NOTE: bad_notes(batch)}))
    notes, nested = mapped.column(NOTE).to_pylist(), _nested_reasons(stage, mapped)
    tried.read += len(notes)
    for number, note in enumerate(notes):
        if note is None and number not in nested:
            tried.loaded += 1
            continue
        letter = BAD if note is None else note[:1].decode()
        if letter == UNSELECTED:
            tried.unselected += 1
        elif letter in (BAD, UNREAD):
            tried.bad += 1
            reason = nested[number] if note is None else parse_bad(note)[0]
            tried.reasons[reason] += 1
            tried.first.setdefault(reason, f"{batch.column(FILE)[number]}, row {batch.column(ROW)[number]}")
        else:
            tried.late += 1
    is_good = [note is None and number not in nested for number, note in enumerate(notes)]
    good = mapped.filter(pa.array(is_good, pa.bool_()))
    for column in stage.mapping.columns:
        kept = tried.values.setdefault(column.name, [])
        found = (value for value in good.column(column.name).to_pylist() if value is not None)
        kept += islice(found, _EXAMPLES - len(kept))


def _nested_reasons(stage: Stage, mapped: pa.RecordBatch) -> dict[int, str]:
    """By row, why a nested value does not fit: the task that writes would find it."""
    found = dict[int, str]()
    for name, wanted in stage.tools.nested.items() if stage.tools.is_strict else ():
        _, bad = nested_values(name, wanted.type, mapped.column(name), nullable=wanted.nullable)
        found = {**bad, **found}
    return found


def _lines(stage: Stage | None, tried: _Tried) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    for column in stage.mapping.columns if stage is not None else ():
        values = ", ".join(_shown(value) for value in tried.values.get(column.name, ()))
        told = f"{column.expression or 'NULL'} → {column.nested or column.type}{'' if column.nullable else ' NOT NULL'}"
        lines.append((f"column {column.name}", f"{told}: {values}" if values else told))
    if stage is not None:
        lines += exploded_line(stage.tools.read)
        lines.append(("where", stage.mapping.where or "true"))
    if tried.not_tried:
        return [*lines, ("rows", f"not tried: {tried.not_tried}")]
    lines.append(("rows", f"{tried.read} read" + (" (the first ones)" if tried.read >= ROWS else "")))
    lines += [("loaded", str(tried.loaded)), ("left out by WHERE", str(tried.unselected)), ("bad", str(tried.bad))]
    if tried.without_row:
        lines.append(("without a row", f"{tried.without_row} records"))
    if tried.late:
        lines.append(("late", str(tried.late)))
    most = tried.reasons.most_common(_REASONS)
    lines += [(f"bad: {count}", f"{reason} (first in {tried.first[reason]})") for reason, count in most]
    return lines


def _shown(value: Any) -> str:
    text = str(value)
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    # Between commas, and on one line, a text with either could not be told from two.
    is_plain = text.isprintable() and text == text.strip() and text and not set(text) & set(",'\"")
    return cut if is_plain or not isinstance(value, str) else repr(cut)
