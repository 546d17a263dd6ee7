"""What SHOW ROUTINE LOAD tells of a definition: the JSON of its columns, with every secret masked."""

from __future__ import annotations

from collections.abc import Sequence

from lading.jobs.routine_views import RoutineFacts
from lading.model.positions import Positions, passed_partitions
from lading.service.compile.positions import kafka_progress, kafka_words, kinesis_progress, kinesis_words
from lading.sources.streams import StreamSight
from lading.sql.expressions.dialect import LadingDoris, parse_expression_tree
from lading.sql.properties.kafka import KafkaProperties
from lading.sql.properties.kinesis import KinesisProperties
from lading.sql.properties.routine import RoutineLoadProperties
from lading.sql.statements.definitions import RoutineLoadDefinition
from lading.sql.statements.jobs import CreateRoutineLoad
from lading.sql.statements.parts import ColumnMapping, Expression
from lading.sql.syntax.masking import mask_properties
from lading.sql.syntax.separators import show_separator

UNSET = "*"
MOST_TASKS = 256
_PREFIX = "property."
_TIMEOUT_INTERVALS, _LEAST_TIMEOUT_S = 10, 60
_UNKNOWN = -1


def facts_of(
    statement: CreateRoutineLoad,
    definition: RoutineLoadDefinition,
    positions: Positions,
    sight: StreamSight | None,
    error_urls: Sequence[str] = (),
) -> RoutineFacts:
    """Everything that is not in the record. `sight` is None when the stream did not answer."""
    unread = [name for name, state in positions.partitions.items() if not state.finished]
    tasks = min(len(unread), definition.properties.desired_concurrent_number, MOST_TASKS)
    lag = dict.fromkeys(sorted(unread, key=_order), _UNKNOWN)
    if sight is not None:
        lag |= {name: _UNKNOWN if sight.lag.get(name) is None else int(sight.lag[name] or 0) for name in lag}
    is_kafka = isinstance(definition.source, KafkaProperties)
    words = kafka_words(positions) if is_kafka else kinesis_words(positions)
    return RoutineFacts(
        source_type=statement.source.name,
        job_properties=job_properties(statement, definition.properties, tasks),
        source_properties=_source_properties(definition, positions, sight),
        custom_properties=_custom_properties(statement, definition),
        progress=kafka_progress(positions) if is_kafka else kinesis_progress(positions),
        starts={name: at for name, at in words.items() if name in lag},
        lag=lag,
        statistic={} if is_kafka else _shard_counts(positions, sight),
        tasks=tasks,
        error_urls=tuple(error_urls),
        timeout_s=max(_TIMEOUT_INTERVALS * definition.properties.max_batch_interval_s, _LEAST_TIMEOUT_S),
    )


def _order(name: str) -> tuple[int, str]:
    return (int(name), "") if name.isdigit() else (0, name)


def job_properties(statement: CreateRoutineLoad, properties: RoutineLoadProperties, tasks: int) -> dict[str, str]:
    """JobProperties, in Doris' order. All values are strings."""
    clauses = statement.clauses
    shown = {
        "partitions": UNSET,
        "columnToColumnExpr": ",".join(_mapping(item) for item in clauses.columns) if clauses.columns else UNSET,
        "precedingFilter": _condition(clauses.preceding_filter),
        "whereExpr": _condition(clauses.where),
        "delete": UNSET,
        "sequence_col": UNSET,
    }
    if properties.format == "csv":
        shown["column_separator"] = f"'{show_separator(properties.csv.column_separator)}'"
        shown["line_delimiter"] = f"'{show_separator(properties.csv.line_delimiter)}'"
    else:
        shown["format"] = properties.format
    shown |= {
        "partial_columns": _boolean(properties.partial_columns),
        "max_error_number": str(properties.max_error_number),
        "max_batch_interval": str(properties.max_batch_interval_s),
        "max_batch_rows": str(properties.max_batch_rows),
        "max_batch_size": str(properties.max_batch_bytes),
        "current_concurrent_number": str(tasks),
        "desired_concurrent_number": str(properties.desired_concurrent_number),
        "exec_mem_limit": str(properties.exec_mem_limit_bytes),
        "merge_type": statement.merge_type.value,
        "timezone": properties.timezone or "UTC",
        "strict_mode": _boolean(properties.strict_mode),
        "send_batch_parallelism": str(properties.send_batch_parallelism),
        "load_to_single_tablet": "false",
        "unique_key_update_mode": properties.unique_key_update_mode,
        "max_filter_ratio": str(properties.max_filter_ratio),
    }
    shown |= _csv(properties) if properties.format == "csv" else _json(statement, properties)
    return shown


def _csv(properties: RoutineLoadProperties) -> dict[str, str]:
    csv = properties.csv
    return {"enclose": csv.enclose, "escape": csv.escape, "empty_field_as_null": _boolean(csv.empty_field_as_null)}


def _json(statement: CreateRoutineLoad, properties: RoutineLoadProperties) -> dict[str, str]:
    json = properties.json
    return {
        "jsonpaths": statement.properties.get("jsonpaths", ""),
        "json_root": json.json_root,
        "strip_outer_array": _boolean(json.strip_outer_array),
        "num_as_string": _boolean(json.num_as_string),
        "fuzzy_parse": _boolean(json.fuzzy_parse),
    }


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _mapping(item: ColumnMapping) -> str:
    return item.name if item.expression is None else f"{item.name}={item.expression.text}"


def _condition(expression: Expression | None) -> str:
    """A condition as it was understood, in brackets, with every name in backquotes."""
    if expression is None:
        return UNSET
    tree = parse_expression_tree(expression.text, expression.span)
    return f"({tree.sql(dialect=LadingDoris, identify=True, comments=False)})"


def _source_properties(
    definition: RoutineLoadDefinition, positions: Positions, sight: StreamSight | None
) -> dict[str, str]:
    source = definition.source
    if isinstance(source, KafkaProperties):
        numbers = sorted((name for name, state in positions.partitions.items() if not state.finished), key=_order)
        return {
            "topic": source.topic,
            "currentKafkaPartitions": ",".join(numbers),
            "brokerList": source.broker_list,
        }
    opened, closed = _open_and_closed(positions, sight)
    endpoint = {"endpoint": source.endpoint} if source.endpoint else {}
    return {
        "region": source.region,
        "stream": source.stream,
        **endpoint,
        "openKinesisShards": ",".join(opened),
        "closedKinesisShards": ",".join(closed),
    }


def _open_and_closed(positions: Positions, sight: StreamSight | None) -> tuple[Sequence[str], Sequence[str]]:
    """As the stream tells; where it does not, what was not read to its end may be open."""
    if sight is not None and (sight.open_partitions or sight.closed_partitions):
        return sight.open_partitions, sight.closed_partitions
    passed = passed_partitions(positions)
    states = sorted((name, state) for name, state in positions.partitions.items() if name not in passed)
    return [name for name, state in states if not state.finished], [name for name, state in states if state.finished]


def _shard_counts(positions: Positions, sight: StreamSight | None) -> dict[str, int]:
    if sight is not None and sight.facts:
        return dict(sight.facts)
    opened, closed = _open_and_closed(positions, None)
    return {
        "openShardNum": len(opened),
        "closedShardNum": len(closed),
        "trackedShardNum": len(opened),
        "cachedMillisBehindLatestShardNum": 0,
        "totalMillisBehindLatest": 0,
        "maxMillisBehindLatest": 0,
    }


def _custom_properties(statement: CreateRoutineLoad, definition: RoutineLoadDefinition) -> dict[str, str]:
    given = mask_properties(statement.source.properties)
    custom = {name.removeprefix(_PREFIX): value for name, value in given.items() if name.startswith(_PREFIX)}
    secret = {name: value for name, value in given.items() if name.startswith("aws.") and "_key" in name}
    source = definition.source
    if isinstance(source, KinesisProperties):
        return {"kinesis_default_pos": source.default_position, **custom, **secret}
    return {"kafka_default_offsets": source.default_offset, **custom, **secret}
