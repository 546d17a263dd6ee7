"""What SHOW ROUTINE LOAD tells of a definition: the JSON of its columns, with every secret masked."""

from __future__ import annotations

from collections.abc import Sequence

from lading.jobs.record import JobRecord
from lading.jobs.views import RoutineFacts
from lading.model.load import ColumnSpec, LoadSpec
from lading.model.positions import Positions
from lading.model.row_formats import CsvOptions, JsonOptions
from lading.sources.kind import StreamKind
from lading.sources.registry import stream_kind
from lading.sources.streams import StreamSight
from lading.sql.expressions.dialect import LadingDoris, parse_expression_tree
from lading.sql.syntax.masking import mask_properties
from lading.sql.syntax.separators import show_separator
from lading.sql.syntax.spans import Span

UNSET = "*"
MOST_TASKS = 256
_PREFIX = "property."
_UNKNOWN = -1


def facts_of(
    record: JobRecord,
    load: LoadSpec,
    positions: Positions,
    sight: StreamSight | None,
    error_urls: Sequence[str] = (),
) -> RoutineFacts:
    """Everything that the record does not show. `load` has its secrets, as far as they can be read.

    `sight` is None when the stream did not answer.
    """
    unread = [name for name, state in positions.partitions.items() if not state.finished]
    kind, properties = stream_kind(load.source.kind), load.source.properties
    kind.check(load)
    tasks = min(len(unread), load.limits.tasks or MOST_TASKS, MOST_TASKS)
    lag = dict.fromkeys(sorted(unread, key=_order), _UNKNOWN)
    if sight is not None:
        lag |= {name: _UNKNOWN if sight.lag.get(name) is None else int(sight.lag[name] or 0) for name in lag}
    words = kind.words(positions)
    return RoutineFacts(
        source_type=load.source.kind,
        job_properties=job_properties(record, load, tasks),
        source_properties=kind.shown_source(properties, positions, sight),
        custom_properties=_custom_properties(load, kind),
        progress=kind.progress(positions),
        starts={name: at for name, at in words.items() if name in lag},
        lag=lag,
        statistic=kind.shown_counts(positions, sight),
        tasks=tasks,
        error_urls=tuple(error_urls),
        timeout_s=load.timeout_s,
    )


def _order(name: str) -> tuple[int, str]:
    return (int(name), "") if name.isdigit() else (0, name)


def job_properties(record: JobRecord, load: LoadSpec, tasks: int) -> dict[str, str]:
    """JobProperties, in Doris' order. All values are strings."""
    mapping, limits, rows = load.mapping, load.limits, load.records
    shown = {
        "partitions": UNSET,
        "columnToColumnExpr": ",".join(_mapping(item) for item in mapping.columns) if mapping.columns else UNSET,
        "precedingFilter": _condition(mapping.preceding_filter),
        "whereExpr": _condition(mapping.where),
        "delete": UNSET,
        "sequence_col": UNSET,
    }
    if rows.format == "csv":
        shown["column_separator"] = f"'{show_separator(rows.csv.column_separator)}'"
        shown["line_delimiter"] = f"'{show_separator(rows.csv.line_delimiter)}'"
    else:
        shown["format"] = rows.format
    shown |= {
        "partial_columns": "false",
        "max_error_number": str(load.budget.max_errors),
        "max_batch_interval": str(limits.interval_s),
        "max_batch_rows": str(limits.rows),
        "max_batch_size": str(limits.size_bytes),
        "current_concurrent_number": str(tasks),
        "desired_concurrent_number": str(limits.tasks),
        "exec_mem_limit": str(rows.exec_mem_limit_bytes),
        "merge_type": "APPEND",
        "timezone": load.session.time_zone or "UTC",
        "strict_mode": _boolean(load.session.strict_values),
        "send_batch_parallelism": str(rows.send_batch_parallelism),
        "load_to_single_tablet": "false",
        "unique_key_update_mode": "UPSERT",
        "max_filter_ratio": str(load.budget.max_ratio),
    }
    shown |= _csv(rows.csv) if rows.format == "csv" else _json(record, rows.json)
    return shown


def _csv(csv: CsvOptions) -> dict[str, str]:
    return {"enclose": csv.enclose, "escape": csv.escape, "empty_field_as_null": _boolean(csv.empty_field_as_null)}


def _json(record: JobRecord, json: JsonOptions) -> dict[str, str]:
    return {
        "jsonpaths": record.properties.get("jsonpaths", ""),
        "json_root": json.json_root,
        "strip_outer_array": _boolean(json.strip_outer_array),
        "num_as_string": _boolean(json.num_as_string),
        "fuzzy_parse": _boolean(json.fuzzy_parse),
    }


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _mapping(item: ColumnSpec) -> str:
    return item.name or "" if item.expression is None else f"{item.name}={item.expression}"


def _condition(expression: str | None) -> str:
    """A condition as it was understood, in brackets, with every name in backquotes."""
    if expression is None:
        return UNSET
    tree = parse_expression_tree(expression, Span(expression, 0, len(expression)))
    return f"({tree.sql(dialect=LadingDoris, identify=True, comments=False)})"


def _custom_properties(load: LoadSpec, kind: StreamKind) -> dict[str, str]:
    given = mask_properties(load.source.properties)
    custom = {name.removeprefix(_PREFIX): value for name, value in given.items() if name.startswith(_PREFIX)}
    secret = {name: value for name, value in given.items() if name.startswith("aws.") and "_key" in name}
    return {**kind.shown_default(load.source.properties), **custom, **secret}
