"""PROPERTIES of a routine load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lading.errors import NotSupportedError, SqlError
from lading.model.load import DedupSpec, EvolutionSpec, ListeningSpec, WatermarkSpec
from lading.model.row_formats import CsvOptions, JsonOptions
from lading.sql.properties.errors_table import ERRORS_PROPERTY_NAMES, read_errors_table
from lading.sql.properties.evolution import EVOLUTION_PROPERTY_NAMES, read_evolution
from lading.sql.properties.listeners import LISTENER_PROPERTY_NAMES, PREFIX, read_listening
from lading.sql.properties.row_formats import (
    ENCLOSE_RULES,
    RECORD_JSON_RULES,
    read_record_csv_options,
    read_record_json_options,
)
from lading.sql.properties.state import STATE_PROPERTY_NAMES, read_dedup, read_watermark
from lading.sql.properties.values import (
    Read,
    Rule,
    boolean,
    known_names,
    never,
    only,
    ratio,
    read_fields,
    refuse,
    timezone,
    whole,
    word,
)

MIN_BATCH_ROWS = 200_000
MIN_BATCH_BYTES = 100 * 1024 * 1024
MAX_BATCH_BYTES = 10 * 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutineLoadProperties:
    """What PROPERTIES says. `exec_mem_limit` and `send_batch_parallelism` change nothing; SHOW prints them."""

    desired_concurrent_number: int = 256
    max_batch_interval_s: int = 60
    max_batch_rows: int = 20_000_000
    max_batch_bytes: int = 1_073_741_824
    max_error_number: int = 0
    max_filter_ratio: float = 1.0
    strict_mode: bool = False
    timezone: str = ""
    """Empty: that of the service."""
    format: str = "csv"
    partial_columns: bool = False
    unique_key_update_mode: str = "UPSERT"
    exec_mem_limit_bytes: int = 2_147_483_648
    send_batch_parallelism: int = 1
    csv: CsvOptions = field(default_factory=CsvOptions)
    json: JsonOptions = field(default_factory=JsonOptions)
    on_poison_record: str = "PAUSE"
    """What becomes of a record that ends every worker that reads it."""
    watermark: WatermarkSpec | None = None
    dedup: DedupSpec | None = None
    listening: ListeningSpec | None = None
    evolution: EvolutionSpec = field(default_factory=EvolutionSpec)
    errors_table: str = ""
    """The table that gets the bad rows. Empty: none does."""


REGISTRY_FORMATS = ("avro", "protobuf")
"""Formats whose schemas are in a registry. Only Kafka has one."""


def invalid_format(given: str) -> SqlError:
    """The error for a format that cannot be in a record."""
    msg = f"Invalid format type: {given} cannot be in a record"
    todo = "Say csv or json; avro and protobuf are for KAFKA."
    return refuse(msg, property="format", value=given, todo=todo)


def record_kind(name: str, given: str) -> str:
    """The format of records, in one word."""
    known = given.strip().lower()
    if known in ("csv", "csv_with_names", "csv_with_names_and_types"):
        return "csv"
    if known in ("json", *REGISTRY_FORMATS):
        return known
    if known in ("parquet", "orc", "arrow", "hive_text", "wal", "native"):
        raise invalid_format(given)
    msg = f"format:{given} is not supported."
    raise refuse(msg, property=name, value=given, todo="Say csv or json.")


def _positive(fragment: str = "must be greater than 0") -> Read:
    return whole(lambda n: n > 0, fragment)


_RULES = (
    Rule(name="desired_concurrent_number", field="desired_concurrent_number", read=_positive()),
    Rule(name="max_batch_interval", field="max_batch_interval_s", read=whole(lambda n: n >= 1, "should >= 1")),
    Rule(
        name="max_batch_rows",
        field="max_batch_rows",
        read=whole(lambda n: n >= MIN_BATCH_ROWS, "should > 200000 (200000 itself is allowed)"),
    ),
    Rule(
        name="max_batch_size",
        field="max_batch_bytes",
        read=whole(lambda n: MIN_BATCH_BYTES <= n <= MAX_BATCH_BYTES, "should between 100MB and 10GB"),
    ),
    Rule(name="max_error_number", field="max_error_number", read=whole(lambda n: n >= 0, "should >= 0")),
    Rule(name="max_filter_ratio", field="max_filter_ratio", read=ratio("should between 0 and 1")),
    Rule(name="strict_mode", field="strict_mode", read=boolean),
    Rule(name="timezone", field="timezone", read=timezone),
    Rule(name="format", field="format", read=record_kind),
    Rule(name="partial_columns", field="partial_columns", read=boolean),
    Rule(
        name="unique_key_update_mode",
        field="unique_key_update_mode",
        read=word("UPSERT", "UPDATE_FIXED_COLUMNS", "UPDATE_FLEXIBLE_COLUMNS"),
    ),
    Rule(
        name="exec_mem_limit",
        field="exec_mem_limit_bytes",
        read=whole(lambda n: n >= 0, "must be greater than 0 (0 is allowed)"),
    ),
    Rule(name="on_poison_record", field="on_poison_record", read=word("PAUSE", "QUARANTINE")),
    Rule(name="send_batch_parallelism", field="send_batch_parallelism", read=_positive()),
    Rule(
        name="load_to_single_tablet",
        field="",
        read=only(
            False,
            "if load_to_single_tablet set to true, the olap table must be with random distribution",
            "Leave it out: tables of Lading have no tablets.",
        ),
    ),
    Rule(
        name="workload_group",
        field="",
        read=never("can not find workload group {}", "Leave it out: Lading has no workload groups."),
    ),
    Rule(
        name="partial_update_new_key_behavior",
        field="",
        read=never(
            "partial_update_new_key_behavior can only be set when partial update is enabled",
            "Leave it out: no table of Lading can be updated in part.",
        ),
    ),
)
ROUTINE_PROPERTY_NAMES = STATE_PROPERTY_NAMES.union(
    LISTENER_PROPERTY_NAMES,
    EVOLUTION_PROPERTY_NAMES,
    ERRORS_PROPERTY_NAMES,
    (rule.name for rule in (*_RULES, *ENCLOSE_RULES, *RECORD_JSON_RULES)),
)
"""Every property that a routine load can have, but for those of listeners."""
ALTERABLE_PROPERTY_NAMES = ROUTINE_PROPERTY_NAMES - {
    "format",
    "exec_mem_limit",
    "send_batch_parallelism",
    "load_to_single_tablet",
    "partial_update_new_key_behavior",
}
"""Properties that ALTER may change."""


def read_routine_properties(
    properties: Mapping[str, str], *, column_separator: str | None = None
) -> RoutineLoadProperties:
    """The properties of a routine load. `column_separator` is what COLUMNS TERMINATED BY says."""
    check_names(properties, ROUTINE_PROPERTY_NAMES)
    watermark = read_watermark(properties)
    record = RoutineLoadProperties(
        **read_fields(_RULES, properties),
        csv=read_record_csv_options(properties, column_separator),
        json=read_record_json_options(properties),
        watermark=watermark,
        dedup=read_dedup(properties, watermark),
        listening=read_listening(properties, watermark),
        evolution=read_evolution(properties),
        errors_table=read_errors_table(properties),
    )
    _check_update_mode(record)
    return record


def check_names(properties: Mapping[str, str], known: frozenset[str]) -> None:
    """Refuse properties of other names."""
    for name in properties:
        if name not in known and not name.startswith(PREFIX):
            msg = f"{name} is invalid property"
            raise refuse(msg, property=name, todo=known_names(name, known))


def _check_update_mode(record: RoutineLoadProperties) -> None:
    if record.partial_columns or record.unique_key_update_mode != "UPSERT":
        msg = "Updating some columns of a row is only supported in unique table MoW, which Lading's tables are not"
        raise NotSupportedError(msg, todo="Leave out partial_columns and unique_key_update_mode.")
