"""PROPERTIES of a streaming job."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lading.errors import SqlError
from lading.model.file_offset import file_name_or_none
from lading.model.load import DedupSpec, EvolutionSpec, ListeningSpec, WatermarkSpec
from lading.sql.properties.errors_table import ERRORS_PROPERTY_NAMES, read_errors_table
from lading.sql.properties.evolution import EVOLUTION_PROPERTY_NAMES, read_evolution
from lading.sql.properties.listeners import LISTENER_PROPERTY_NAMES, PREFIX, read_listening
from lading.sql.properties.state import STATE_PROPERTY_NAMES, read_dedup, read_watermark
from lading.sql.properties.values import Rule, boolean, known_names, ratio, read_fields, refuse, timezone, whole, word

MIN_BATCH_BYTES = 100 * 1024 * 1024
MAX_BATCH_BYTES = 10 * 1024 * 1024 * 1024
MAX_ALSO_LOAD = 1000
_KEPT = "__"
"""Properties that begin with this are kept and not looked at."""
_SESSION = "session."


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionVariables:
    """What SET says in Doris, for the batches of one job."""

    enable_insert_strict: bool = True
    """Any bad row refuses the batch."""
    insert_max_filter_ratio: float = 1.0
    """How many of the rows may be bad, when it is not strict."""
    enable_strict_cast: bool = False
    """A CAST that fails makes a bad row, not NULL."""
    insert_timeout_s: int = 1800
    query_timeout_s: int = 1800
    time_zone: str = ""
    """Empty: that of the service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamingJobProperties:
    """What PROPERTIES says."""

    max_interval_s: int = 10
    max_batch_files: int = 256
    max_batch_bytes: int = MAX_BATCH_BYTES
    max_batch_rows: int | None = None
    """For streams, as the next: so many rows are read in a batch at most. None: as the source has it."""
    max_batch_size: int | None = None
    desired_concurrent_number: int | None = None
    """So many tasks read at one time at most. None: as many as there is work for."""
    offset: str | None = None
    """The last file that counts as loaded. None: the statement says nothing about it."""
    ingestion_mode: str = "CONTINUOUS"
    """ONCE: the job is finished when everything that was there is loaded."""
    late_files: str = "LOAD"
    """Files that sort before the position when they appear: LOAD loads them, SHOW only counts them."""
    late_window: int | None = None
    """How many loaded files are remembered. None: as the source has it."""
    also_load: tuple[str, ...] = ()
    """Files that are loaded wherever they sort, once."""
    settle_s: int | None = None
    """For so many seconds a file on a disk must not have been modified. None: as the installation has it."""
    on_file_error: str = "PAUSE"
    """What becomes of a file that cannot be read."""
    on_poison_record: str = "PAUSE"
    """What becomes of a record that ends every worker that reads it."""
    watermark: WatermarkSpec | None = None
    dedup: DedupSpec | None = None
    listening: ListeningSpec | None = None
    evolution: EvolutionSpec = field(default_factory=EvolutionSpec)
    errors_table: str = ""
    """The table that gets the bad rows. Empty: none does."""
    session: SessionVariables = field(default_factory=SessionVariables)
    kept: Mapping[str, str] = field(default_factory=dict)
    """Properties that begin with two underscores."""


def _offset(name: str, text: str) -> str:
    try:
        file_name = file_name_or_none(text) if text.strip() else None
    except ValueError as error:
        msg = f"Failed to initialize offset: {text!r} is not JSON"
        raise refuse(msg, property=name, value=text) from error
    if file_name is None:
        msg = f"Invalid format for offset: {text!r}"
        raise refuse(msg, property=name, value=text, todo='Write {"fileName":"path/of/the/last/file"}.')
    return file_name


def _file_names(name: str, text: str) -> tuple[str, ...]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(each, str) and each for each in found):
        msg = f"{name} should be a list of file names"
        raise refuse(msg, property=name, value=text, todo='Write ["path/of/a/file", "path/of/another"].')
    if len(found) > MAX_ALSO_LOAD:
        msg = f"{name} names {len(found)} files"
        raise refuse(msg, property=name, todo=f"Name at most {MAX_ALSO_LOAD}; load the others afterwards.")
    return tuple(dict.fromkeys(found))


_RULES = (
    Rule(name="max_interval", field="max_interval_s", read=whole(lambda n: n >= 1, "should > 1 (1 is allowed)")),
    Rule(name="s3.max_batch_files", field="max_batch_files", read=whole(lambda n: n >= 1, "should >=1")),
    Rule(
        name="s3.max_batch_bytes",
        field="max_batch_bytes",
        read=whole(lambda n: MIN_BATCH_BYTES <= n <= MAX_BATCH_BYTES, "should between 100MB and 10GB"),
    ),
    Rule(name="max_batch_rows", field="max_batch_rows", read=whole(lambda n: n >= 1, "should >= 1")),
    Rule(
        name="max_batch_size",
        field="max_batch_size",
        read=whole(lambda n: MIN_BATCH_BYTES <= n <= MAX_BATCH_BYTES, "should between 100MB and 10GB"),
    ),
    Rule(
        name="desired_concurrent_number",
        field="desired_concurrent_number",
        read=whole(lambda n: n >= 1, "must be greater than 0"),
    ),
    Rule(name="offset", field="offset", read=_offset),
    Rule(name="s3.ingestion_mode", field="ingestion_mode", read=word("ONCE", "CONTINUOUS")),
    Rule(name="s3.late_files", field="late_files", read=word("LOAD", "SHOW")),
    Rule(name="s3.late_window", field="late_window", read=whole(lambda n: n >= 1, "should >= 1")),
    Rule(name="s3.also_load", field="also_load", read=_file_names),
    Rule(name="on_poison_record", field="on_poison_record", read=word("PAUSE", "QUARANTINE")),
    Rule(name="file.on_error", field="on_file_error", read=word("PAUSE", "SKIP")),
    Rule(name="file.settle_seconds", field="settle_s", read=whole(lambda n: n >= 0, "should >= 0")),
)


def _timeout(name: str, text: str) -> int:
    found: int = whole(lambda n: n >= 1, "should >= 1")(name, text)
    return found


_SESSION_RULES = (
    Rule(name="enable_insert_strict", field="enable_insert_strict", read=boolean),
    Rule(name="insert_max_filter_ratio", field="insert_max_filter_ratio", read=ratio("should between 0 and 1")),
    Rule(name="enable_strict_cast", field="enable_strict_cast", read=boolean),
    Rule(name="insert_timeout", field="insert_timeout_s", read=_timeout),
    Rule(name="query_timeout", field="query_timeout_s", read=_timeout),
    Rule(name="time_zone", field="time_zone", read=timezone),
)
JOB_PROPERTY_NAMES = STATE_PROPERTY_NAMES.union(
    LISTENER_PROPERTY_NAMES,
    EVOLUTION_PROPERTY_NAMES,
    ERRORS_PROPERTY_NAMES,
    (rule.name for rule in _RULES),
    (_SESSION + rule.name for rule in _SESSION_RULES),
)
"""Every property that a streaming job can have, but for those of listeners and those that begin with __."""


_OF_STREAMS = frozenset(("max_batch_rows", "max_batch_size", "desired_concurrent_number"))


def check_of_source(properties: Mapping[str, str], source: str, *, is_stream: bool) -> None:
    """Refuse properties that do nothing for the source of a job."""
    for name in properties:
        if is_stream and (name == "offset" or name.startswith(("s3.", "file."))):
            msg = f"{name} is for jobs that load files, and the source is {source}"
            todo = f"Say where to begin among the properties of {source}(…)." if name == "offset" else "Leave it out."
            raise refuse(msg, property=name, todo=todo)
        if not is_stream and name in _OF_STREAMS:
            msg = f"{name} is for jobs that read a stream, and the source is {source}"
            raise refuse(msg, property=name, todo="Say s3.max_batch_files or s3.max_batch_bytes.")


def check_of_pair(properties: Mapping[str, str], are_streams: Sequence[bool]) -> None:
    """The same for the two sources of a join."""
    for name in ("offset", "s3.also_load"):
        if name in properties:
            msg = f"{name} cannot be used in a join of two streams: it does not say which of them it is about"
            todo = (
                "Leave it out, and move the job with ALTER once it is there." if name == "offset" else "Leave it out."
            )
            raise refuse(msg, property=name, todo=todo)
    if any(are_streams) and properties.get("s3.ingestion_mode", "").strip().upper() == "ONCE":
        msg = "s3.ingestion_mode is ONCE, and one of the sources goes on for ever"
        raise refuse(msg, property="s3.ingestion_mode", todo="Leave it out.")
    if len(set(are_streams)) == 1:
        check_of_source(properties, "that of a join", is_stream=all(are_streams))


def read_job_properties(properties: Mapping[str, str]) -> StreamingJobProperties:
    """The properties of a streaming job."""
    known = STATE_PROPERTY_NAMES.union(
        LISTENER_PROPERTY_NAMES, EVOLUTION_PROPERTY_NAMES, ERRORS_PROPERTY_NAMES, (rule.name for rule in _RULES)
    )
    for name in properties:
        if name == "compute_group":
            msg = "compute_group is only supported in cloud mode"
            raise refuse(msg, property=name)
        if name not in known and not name.startswith((_SESSION, _KEPT, PREFIX)):
            msg = f"Invalid properties: [{name}]"
            raise refuse(msg, property=name, todo=known_names(name, JOB_PROPERTY_NAMES))
    kept = {name: value for name, value in properties.items() if name.startswith(_KEPT)}
    watermark = read_watermark(properties)
    return StreamingJobProperties(
        **read_fields(_RULES, properties),
        watermark=watermark,
        dedup=read_dedup(properties, watermark),
        listening=read_listening(properties, watermark),
        evolution=read_evolution(properties),
        errors_table=read_errors_table(properties),
        session=_session(properties),
        kept=kept,
    )


def _session(properties: Mapping[str, str]) -> SessionVariables:
    given = {name.removeprefix(_SESSION): value for name, value in properties.items() if name.startswith(_SESSION)}
    rules = {rule.name: rule for rule in _SESSION_RULES}
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name not in rules:
            msg = f"Invalid session variable, [{name}]"
            raise refuse(msg, property=_SESSION + name, todo=f"Known are: {', '.join(sorted(rules))}.")
        try:
            found[rules[name].field] = rules[name].read(name, _as_boolean(name, value))
        except SqlError as error:
            msg = f"Variable '{name}' can't be set to the value of '{value}'"
            raise refuse(msg, property=_SESSION + name, value=value) from error
    return SessionVariables(**found)


def _as_boolean(name: str, value: str) -> str:
    """SET also takes 0 and 1 for false and true."""
    is_switch = name.startswith("enable_")
    return {"0": "false", "1": "true"}.get(value.strip(), value) if is_switch else value
