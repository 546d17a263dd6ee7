"""Statements that look into a load, of whichever kind: EXPLAIN, SHOW LOAD ERRORS, GAPS and AUDIT."""

from __future__ import annotations

from itertools import islice

from lading.jobs.record import JobRecord
from lading.model.pairs import single_sources
from lading.pipeline.state.partials import partials_of
from lading.pipeline.state.rules import JoinRule, StateStage, StreamJoinRule, WindowRule
from lading.service.compile.compiled import Compiled
from lading.service.compile.exploded import exploded_line
from lading.service.edits.edit import facts_text
from lading.service.result import Result, table
from lading.service.session import Session
from lading.service.statements.loads import find_any
from lading.service.views.build import redacted
from lading.service.views.error_rows import read_error_rows
from lading.service.views.services import service_of
from lading.sources.files.aside import aside_of
from lading.sources.registry import kind_of
from lading.sql.expressions.vector_nodes import Refusal
from lading.sql.statements.jobs import ShowLoad
from lading.status.lag import LagUnit

DEFAULT_ERRORS = 100


def explain_job(session: Session, record: JobRecord) -> Result:
    """How a job is run."""
    compiled, target = session.lading.compile(record)
    compiled.close()
    limits = compiled.job.limits
    size = f"{limits.files} files, {limits.size_bytes} bytes"
    if compiled.source.read_s is not None:
        size = f"{limits.rows} rows, {limits.size_bytes} bytes, {limits.seconds:g} seconds"
    stages = "one stage"
    if compiled.joins is not None:
        stages = "a stage that reads into a spool, and one that joins it with the table"
    elif record.spec is not None and record.spec.stream_join is not None:
        stages = "a stage that reads both streams into a spool, and one that joins them with each other and the state"
    elif compiled.stage is not None and compiled.stage.state is not None:
        stages = _stages(compiled.stage.state)
    lines = [
        *_path(compiled, stages),
        ("source", _source(record)),
        ("target", f"{record.target} at {target.location}"),
        ("limits", size),
        *_service(session, record),
    ]
    if compiled.stage is not None:
        mapping = compiled.stage.mapping
        lines += [(f"column {c.name}", f"{c.expression or 'NULL'} → {c.nested or c.type}") for c in mapping.columns]
        lines += exploded_line(compiled.stage.tools.read)
        lines.append(("where", mapping.where or "true"))
        lines.append(("source columns", ", ".join(compiled.stage.source.names)))
        lines += _joined(session, record, compiled) + _joined_streams(record, compiled) + _kept(record)
    else:
        lines.append(("source columns", "not known yet: there is no file"))
    return table(("What", "How"), lines + _aside(session, record) + _errors_table(record) + _listeners(record))


def _aside(session: Session, record: JobRecord) -> list[tuple[str, str]]:
    """Files that are not loaded by the word of an operator, or because they could not be read."""
    if record.spec is None or kind_of(record.spec.source.kind).lag_unit is not LagUnit.FILES:
        return []
    bills = session.lading.bills(record, 1)
    found = aside_of(bills[0].positions, session.lading.clock.now()) if bills else {}
    return [(f"files {what}", redacted(", ".join(keys))) for what, keys in found.items()]


def _path(compiled: Compiled, stages: str) -> list[tuple[str, str]]:
    """How rows are mapped, and why Spark has to do it."""
    general = ("path", f"general: Arrow in, Spark SQL, Arrow out, {stages}")
    if compiled.stage is None:
        return [general]
    found = compiled.stage.vector
    if isinstance(found, Refusal):
        return [general, ("why", f"{found.part}: {found.why}")]
    return [("path", "vector: read, map and write in one Arrow task")]


def _stages(state: StateStage) -> str:
    if isinstance(state.rule, WindowRule) and partials_of(state.rule) is not None:
        return "a stage that adds partial results to the state, and one that merges those of windows which close"
    return "a stage that reads into a spool, and one that merges it with the state"


def _service(session: Session, record: JobRecord) -> list[tuple[str, str]]:
    """Which service runs it, when several share the store."""
    holder = service_of(session.lading, record.job_id)
    return [("runs in", holder)] if holder else []


def _source(record: JobRecord) -> str:
    if record.spec is None:
        return ""
    source = record.spec.source
    singles = single_sources(source).values()
    told = [f"{each.kind} {each.properties.get(kind_of(each.kind).subject, '')}".strip() for each in singles]
    return redacted(" and ".join(told))


def _joined(session: Session, record: JobRecord, compiled: Compiled) -> list[tuple[str, str]]:
    """The join, its snapshot, and how that is kept fixed."""
    state = compiled.stage.state if compiled.stage is not None else None
    if state is None or not isinstance(state.rule, JoinRule) or record.spec is None or record.spec.join is None:
        return []
    rule, join, word = state.rule, record.spec.join, "LEFT JOIN" if state.rule.is_left else "JOIN"
    bills, newest = session.lading.bills(record, 1), compiled.joins.newest() if compiled.joins is not None else ()
    named = bills[0].joined if bills else ()
    lines = [
        ("join", f"{word} {join.table} AS {join.alias} ON {rule.on}"),
        ("joined columns", ", ".join(rule.table.names)),
        ("joined snapshot", ", ".join(f"{each.snapshot} of {each.table}" for each in named) or "none yet"),
        ("newest snapshot", ", ".join(f"{each.snapshot} of {each.table}" for each in newest)),
        (
            "kept fixed",
            "a batch joins the snapshot that the bill before it names, also when it is repeated; before a batch that "
            "was never tried, a commit without rows names the newest",
        ),
    ]
    lines += [(f"column {c.name}", f"{c.expression or 'NULL'} → {c.type}") for c in rule.mapping.columns]
    return [*lines, ("joined where", rule.mapping.where or "true")]


def _joined_streams(record: JobRecord, compiled: Compiled) -> list[tuple[str, str]]:
    """The join of two streams, and for how long rows of each are kept."""
    state, spec = compiled.stage.state if compiled.stage is not None else None, record.spec
    if state is None or not isinstance(state.rule, StreamJoinRule) or spec is None or spec.stream_join is None:
        return []
    rule, join, first = state.rule, spec.stream_join, spec.mapping.source_alias or ""
    word, longest = "LEFT JOIN" if join.is_left else "JOIN", [f"{us / 1_000_000:g} s" for us in rule.keeps_us]
    near = f"from {rule.low_us / 1_000_000:g} s to {rule.high_us / 1_000_000:g} s after it"
    lines = [
        ("join", f"{first} {word} {join.alias} ON {join.on}"),
        ("joined", f"a row of {first} with rows of {join.alias} {near}, by {rule.keys} key{'s' * (rule.keys > 1)}"),
    ]
    for side, alias in enumerate((first, join.alias)):
        kept = ", ".join(rule.names[side]) or "keys alone"
        lines.append((f"kept of {alias}", f"{kept}; until the watermark is {longest[side]} past its event time"))
    if join.is_left:
        lines.append(("without a match", f"a row of {first} is written once it is not kept any longer"))
    lines += [(f"column {c.name}", f"{c.expression or 'NULL'} → {c.type}") for c in rule.mapping.columns]
    return [*lines, ("joined where", rule.mapping.where or "true")]


def _kept(record: JobRecord) -> list[tuple[str, str]]:
    """Event time, what is kept of rows, and for how long."""
    spec = record.spec
    if spec is None or spec.watermark is None:
        return []
    mark, lines = spec.watermark, list[tuple[str, str]]()
    idle = f"partitions are idle after {mark.idle_s:g} s" if mark.idle_s else "partitions are never idle"
    ahead = f"; not moved by rows over {mark.max_future_s:g} s ahead of the clock" if mark.max_future_s else ""
    told = f"{mark.column} less {mark.delay_s:g} s; {idle}; late rows: {mark.late_rows.lower()}{ahead}"
    lines.append(("watermark", told))
    if spec.dedup is not None:
        keys = ", ".join(spec.dedup.keys)
        lines.append(("kept", f"keys ({keys}) until the watermark is {spec.dedup.horizon_s:g} s past their event time"))
    if spec.window is not None:
        parts = ", ".join(each.function for each in spec.window.aggregates)
        size = spec.window.size_us / 1_000_000
        what = f"session with gaps below {size:g} s" if spec.window.is_session else f"window of {size:g} s"
        lines.append(("kept", f"{parts} by {what} and key, until the watermark reaches the window's end"))
    return lines


def _errors_table(record: JobRecord) -> list[tuple[str, str]]:
    name = record.spec.errors_table if record.spec is not None else ""
    return [("bad rows", f"to {name}, each once, after the commit that put them aside")] if name else []


def _listeners(record: JobRecord) -> list[tuple[str, str]]:
    """When partitions are done, and who is told."""
    spec = record.spec.listening if record.spec is not None else None
    if spec is None:
        return []
    when = ["the watermark has passed its end"] if spec.mode == "watermark" else []
    if spec.idle_s:
        when.append(f"nothing was committed to it for {spec.idle_s:g} s")
    lines = [("partition is done", " and ".join(when) or "a commit has written to it")]
    for each in spec.listeners:
        to = each.url or each.command
        lines.append((f"listener {each.name}", f"{each.type} {to}".strip()))
    return lines


def show_load(session: Session, statement: ShowLoad) -> Result:
    """SHOW LOAD ERRORS, GAPS or AUDIT."""
    record = find_any(session, statement.name, include_final=True)
    if statement.what == "AUDIT":
        entries = session.lading.store.list_audit(job_id=record.job_id)
        rows = [(str(e.at), e.user, e.action, e.subject, facts_text(e.facts)) for e in entries]
        return table(("Time", "User", "Action", "Subject", "Facts"), rows)
    limit = statement.limit or DEFAULT_ERRORS
    if statement.what == "GAPS":
        bills = session.lading.bills(record, limit)
        gaps = [(g.partition, g.start, g.end, g.reason, str(g.at)) for bill in bills for g in bill.gaps]
        return table(("Partition", "From", "To", "Reason", "Time"), gaps)
    bad = islice(read_error_rows(session.lading, record), limit)
    return table(("Seq", "File", "Row", "Reason", "Raw"), [(e.seq, e.file, e.row, e.reason, e.raw) for e in bad])
