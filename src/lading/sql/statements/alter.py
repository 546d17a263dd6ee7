"""ALTER, applied: an old definition and a change give a new definition, or a reason why not.

Whether the job exists and is paused is for others to say; here it is only about the texts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace

from lading.errors import AlterError
from lading.sql.properties.files import read_file_source
from lading.sql.properties.jobs import read_job_properties
from lading.sql.properties.kafka import read_kafka_properties
from lading.sql.properties.kinesis import read_kinesis_properties
from lading.sql.properties.routine import ALTERABLE_PROPERTY_NAMES, check_names, read_routine_properties
from lading.sql.properties.starts import SHARD_END
from lading.sql.statements.definitions import check_merge_rules, read_stream_source
from lading.sql.statements.jobs import AlterJob, AlterRoutineLoad, CreateJob, CreateRoutineLoad
from lading.sql.statements.parts import InsertSelect, LoadClauses, QualifiedName, SourceFunction
from lading.sql.syntax.spans import is_secret


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteredRoutineLoad:
    """A routine load after ALTER."""

    statement: CreateRoutineLoad
    moves: Mapping[str, str] = field(default_factory=dict)
    """Partitions that an operator sends elsewhere, and where, in the words of the source."""
    is_new_source: bool = False
    """Another topic or stream: nothing that was known about positions is true any longer."""


_ADDRESS = re.compile(r"broker_list$|bootstrap|endpoint|\burl$|\.url$|brokers")
"""Names of properties that say whom a stream or its registry is asked of."""
_REACHED = frozenset(
    (
        "kafka_topic",
        "kinesis_stream",
        "aws.region",
        "aws.role_arn",
        "property.security.protocol",
        "property.sasl.mechanism",
    )
)
"""Those that say what is read with the keys, and how they are sent."""


def alter_streaming_job(old: CreateJob, alter: AlterJob, *, current_db: str | None = None) -> CreateJob:
    """The definition after ALTER JOB. `current_db` is what a table without a database means."""
    insert = alter.insert if alter.insert is not None else old.insert
    if alter.insert is not None:
        _check_insert(old.insert, alter.insert, current_db)
    new = replace(old, properties={**old.properties, **alter.properties}, insert=insert)
    if new == old and "offset" not in alter.properties:  # the same offset again is a move back to it
        msg = "No properties or sql changed"
        raise AlterError(msg, todo="Say what is to be different.")
    read_job_properties(new.properties)
    read_file_source(new.insert.source)
    return new


def _check_insert(old: InsertSelect, new: InsertSelect, current_db: str | None) -> None:
    if _full(old.table, current_db) != _full(new.table, current_db):
        msg = f"target table cannot be modified in ALTER JOB: it is {old.table}, not {new.table}"
        raise AlterError(msg, place=new.table.span, hint="another table", todo="Make a new job for another table.")
    if old.source.name != new.source.name:
        msg = f"source type cannot be modified in ALTER JOB: it is {old.source.name}, not {new.source.name}"
        raise AlterError(msg, place=new.source.span, hint="another source", todo="Make a new job for another source.")
    if old.source.properties.get("uri") != new.source.properties.get("uri"):
        msg = f"The uri property cannot be modified in ALTER JOB: it is {old.source.properties.get('uri')!r}"
        raise AlterError(msg, place=new.source.span, hint="another uri", todo="Make a new job for other files.")


def _full(name: QualifiedName, current_db: str | None) -> tuple[str | None, str]:
    return (name.db if name.db is not None else current_db, name.name)


def names_same_source(old: CreateRoutineLoad, alter: AlterRoutineLoad) -> bool:
    """Whether ALTER names the topic or stream that the job has already."""
    if alter.source is None:
        return False
    name = "kafka_topic" if old.source.name == "KAFKA" else "kinesis_stream"
    return alter.source.properties.get(name) == old.source.properties[name]


def alter_routine_load(
    old: CreateRoutineLoad, alter: AlterRoutineLoad, *, consumed: Collection[str], is_made_again: bool = False
) -> AlteredRoutineLoad:
    """The definition after ALTER ROUTINE LOAD. `consumed` are the partitions or shards that the job reads now.

    A topic or stream that was deleted and made again under its name is a new one: its positions begin anew at the
    default of the job, and partitions that were named as the only ones still are.
    """
    check_names(alter.properties, ALTERABLE_PROPERTY_NAMES)
    clauses = _merged_clauses(old.clauses, alter.clauses)
    new = replace(old, clauses=clauses, properties={**old.properties, **alter.properties})
    check_merge_rules(new)
    read_routine_properties(new.properties, column_separator=clauses.column_separator)
    if alter.source is None:
        return AlteredRoutineLoad(statement=new)
    changed = alter.source.properties
    if is_made_again:
        return _begin_anew(new, changed)
    if old.source.name == "KINESIS":
        return _alter_kinesis(new, changed, consumed)
    return _alter_kafka(new, changed, consumed)


def check_keys_stay(old: CreateRoutineLoad, alter: AlterRoutineLoad) -> None:
    """Keys are for the address, the topic and the protocol that they were given for.

    Raises AlterError when another one is named without them: whoever may alter a job could point them elsewhere.
    """
    changed = alter.source.properties if alter.source is not None else {}
    known = old.source.properties
    moved = [name for name, value in changed.items() if _is_reached_with_keys(name) and known.get(name) != value]
    kept = sorted(name for name in known if is_secret(name) and name not in changed)
    if moved and kept:
        msg = f"{', '.join(moved)} cannot be changed without the keys: they would be sent or used elsewhere"
        todo = f"Write them in the same statement: {', '.join(kept)}."
        raise AlterError(msg, todo=todo)


def _is_reached_with_keys(name: str) -> bool:
    return bool(_ADDRESS.search(name)) or name in _REACHED


def _begin_anew(new: CreateRoutineLoad, changed: Mapping[str, str]) -> AlteredRoutineLoad:
    old, is_kafka = new.source.properties, new.source.name == "KAFKA"
    names, places = ("kafka_partitions", "kafka_offsets") if is_kafka else ("kinesis_shards", "kinesis_shards_pos")
    defaults = _KAFKA_DEFAULTS if is_kafka else ("property.kinesis_default_pos",)
    stale = [places]
    if old.get(_DISCOVERY, "").upper() == "ON" or names in changed:
        stale += [names, _DISCOVERY]
    if places in changed or any(name in changed for name in defaults):
        stale += defaults
    if not is_kafka and any(name in changed for name in _KINESIS_ENDPOINTS):
        stale += _KINESIS_ENDPOINTS
    return _with_source(new, {**_without(old, stale), **changed}, {}, is_new=True)


def _merged_clauses(old: LoadClauses, new: LoadClauses) -> LoadClauses:
    """Every clause that ALTER writes replaces the old one; the others stay."""
    written = {item.name: getattr(new, item.name) for item in fields(new) if getattr(new, item.name) is not None}
    return replace(old, **written)


def _alter_kafka(new: CreateRoutineLoad, changed: Mapping[str, str], consumed: Collection[str]) -> AlteredRoutineLoad:
    """Positions in ALTER move partitions; they do not change which partitions are read."""
    old = new.source.properties
    is_new = changed.get("kafka_topic", old["kafka_topic"]) != old["kafka_topic"]
    asked = read_kafka_properties({**_without(old, KAFKA_STARTS), **changed})
    has_default = any(name in changed for name in _KAFKA_DEFAULTS)
    if asked.partitions and not asked.offsets and not has_default:
        msg = "Must set offset or default offset with partition property"
        raise AlterError(msg, todo="Add kafka_offsets or property.kafka_default_offsets.")
    if is_new:
        return _with_source(new, {**_without(old, KAFKA_STARTS), **changed}, {}, is_new=True)
    _check_discovery(old, changed, "kafka_partitions")
    starts = asked.offsets or tuple(asked.default_offset for _ in asked.partitions)
    moves = {str(number): start for number, start in zip(asked.partitions, starts, strict=True)}
    for name in moves:
        if name not in consumed:
            msg = f"The partition {name} is not in the consumed partitions"
            raise AlterError(msg, todo=f"The job reads: {', '.join(sorted(consumed)) or 'none'}.", partition=name)
    kept = _without(changed, ("kafka_partitions", "kafka_offsets"))
    base = _without(old, _KAFKA_DEFAULTS) if has_default else dict(old)
    merged = _without(base, ("kafka_offsets",)) if has_default else base
    return _with_source(new, {**merged, **kept}, moves, is_new=False)


_KAFKA_DEFAULTS = ("kafka_default_offsets", "property.kafka_default_offsets")
_DISCOVERY = "property.discovery"
KAFKA_STARTS = ("kafka_partitions", "kafka_offsets", *_KAFKA_DEFAULTS, _DISCOVERY)
KINESIS_STARTS = ("kinesis_shards", "kinesis_shards_pos", "property.kinesis_default_pos", _DISCOVERY)
_KINESIS_ENDPOINTS = ("aws.endpoint", "kinesis_endpoint")


def _alter_kinesis(new: CreateRoutineLoad, changed: Mapping[str, str], consumed: Collection[str]) -> AlteredRoutineLoad:
    """Shards in ALTER are moved and become the only ones that are read; another stream forgets them all."""
    has_endpoint = any(name in changed for name in _KINESIS_ENDPOINTS)
    old = _without(new.source.properties, _KINESIS_ENDPOINTS if has_endpoint else ())
    is_new = changed.get("kinesis_stream", old["kinesis_stream"]) != old["kinesis_stream"]
    asked = read_kinesis_properties({**_without(old, KINESIS_STARTS), **changed})
    if is_new:
        return _with_source(new, {**_without(old, KINESIS_STARTS), **changed}, {}, is_new=True)
    for name in asked.shards:
        if name not in consumed:
            msg = f"The shard {name} is not in the consumed shards"
            raise AlterError(msg, todo=f"The job reads: {', '.join(sorted(consumed)) or 'none'}.", partition=name)
    _check_discovery(old, changed, "kinesis_shards")
    has_default = "property.kinesis_default_pos" in changed
    starts = asked.shard_positions or (tuple(asked.default_position for _ in asked.shards) if has_default else ())
    moves = dict(zip(asked.shards, starts, strict=bool(starts)))
    dropped = ("kinesis_shards_pos",) if asked.shards or has_default else ()
    kept = _without(changed, ("kinesis_shards_pos",))
    if asked.shards and asked.discovery == "ON":  # they are moved, and all others are still read
        return _with_source(new, {**_without(old, dropped), **_without(kept, ("kinesis_shards",))}, moves, is_new=False)
    if asked.shards:
        dropped = (*dropped, _DISCOVERY)
    base = {**_without(old, dropped), **_unfinished(old)} if has_default else _without(old, dropped)
    return _with_source(new, {**base, **kept}, moves, is_new=False)


def _unfinished(old: Mapping[str, str]) -> dict[str, str]:
    """Shards without those at SHARD_END: without that word they would be taken for new ones and be read again."""
    names, places = (old.get(name, "").split(",") for name in ("kinesis_shards", "kinesis_shards_pos"))
    if len(names) != len(places) or old.get(_DISCOVERY, "").upper() == "ON":
        return {}
    left = [name for name, place in zip(names, places, strict=True) if place.strip().upper() != SHARD_END]
    return {"kinesis_shards": ",".join(left)} if len(left) < len(names) and left else {}


def _check_discovery(old: Mapping[str, str], changed: Mapping[str, str], names: str) -> None:
    """What was never read has no position, and would be read from its beginning: so a job stays as it was made."""
    is_pinned = names in old and old.get(_DISCOVERY, "").upper() != "ON"
    if _DISCOVERY in changed and (changed[_DISCOVERY].upper() == "ON") == is_pinned:
        msg = f"{_DISCOVERY} cannot be changed to {changed[_DISCOVERY]}"
        raise AlterError(msg, todo="Make another job with what SHOW CREATE ROUTINE LOAD prints.")


def _with_source(
    statement: CreateRoutineLoad, properties: Mapping[str, str], moves: Mapping[str, str], *, is_new: bool
) -> AlteredRoutineLoad:
    source = SourceFunction(name=statement.source.name, properties=properties)
    read_stream_source(source)
    return AlteredRoutineLoad(statement=replace(statement, source=source), moves=moves, is_new_source=is_new)


def _without(properties: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    return {name: value for name, value in properties.items() if name not in names}


def is_discovering(properties: Mapping[str, str], names: str) -> bool:
    """Whether partitions that come later are read too."""
    return names not in properties or properties.get("property.discovery", "").upper() == "ON"
