"""SELECT * FROM S3(…), DESCRIBE FROM S3(…), AS SCHEMA OF S3(…): a look at a source, without Spark and without a job.

Nothing is written and no position moves: the first records are read as a job that begins now would read them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from lading.errors import ConfigError, SqlError
from lading.model.batch import Limits
from lading.model.field_types import WHOLE
from lading.model.load import ColumnSpec, FileIntake, LoadLimits, LoadSpec, MappingSpec, SourceSpec
from lading.model.rows import ERROR, FILE, RAW, REST, ROW
from lading.net.addresses import AddressRules
from lading.service.result import Result
from lading.service.security.reach import hosts_of
from lading.service.security.vault import resolve_properties
from lading.service.session import Session
from lading.service.statements.reach import check_source
from lading.sources.fields import FieldNotes, FieldWatch, rest_fields, spark_name
from lading.sources.files.column_fit import json_texts
from lading.sources.files.heads import first_head
from lading.sources.files.kind import files_spec_of
from lading.sources.files.properties import read_file_source
from lading.sources.files.reader import read_splits
from lading.sources.files.schema import infer_schema
from lading.sources.files.sniff import sniffed, text_type
from lading.sources.files.source import FilesSource
from lading.sources.files.spec import FilesSpec, Format, MissingColumns
from lading.sources.files.unpack import packed_as
from lading.sources.kind import OpenContext
from lading.sources.records.spec import records_of
from lading.sources.registry import FILES, STREAMS, kind_of
from lading.sql.statements.parts import SourceFunction
from lading.sql.statements.tables import ColumnDefinition, LookAt

SAMPLE_ROWS = 10_000
MOST_ROWS = 10_000
MOST_BYTES = 64 * 1024 * 1024
"""Of rows that are kept for one look; the batch that goes beyond it is the last. Many may look at once."""
_HEAD_BYTES = 64 * 1024
_READ_S = 5
_HIDDEN = (FILE, ROW, RAW, ERROR)
_STARTS = {
    "KAFKA": {"kafka_default_offsets": "OFFSET_BEGINNING"},
    "KINESIS": {"property.kinesis_default_pos": "TRIM_HORIZON"},
}
_WATCH = FieldWatch(known={}, rescued_column=REST, adds=True)


@dataclass(slots=True)
class Seen:
    """What the first records have."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    """Properties that were found out, and not given."""
    bad: int = 0
    first_error: str = ""
    missing: str = ""
    """What is not there."""

    @property
    def message(self) -> str:
        found = ", ".join(f'"{name}" = {_shown(value)}' for name, value in self.settings.items())
        parts = [self.missing] if self.missing else []
        parts += [f"read with {found}"] if found else []
        rows = "1 bad row" if self.bad == 1 else f"{self.bad} bad rows, the first"
        parts += [f"{rows}: {self.first_error}"] if self.bad else []
        return "; ".join(parts)


def look(session: Session, statement: LookAt) -> Result:
    """The rows, or the columns with an example of each."""
    limit = statement.limit
    seen = look_at(session, statement.source, SAMPLE_ROWS if limit is None else min(limit, MOST_ROWS))
    names = list(seen.types)
    if limit is not None:
        rows = [tuple(row.get(name) for name in names) for row in seen.rows[:limit]]
        return Result(columns=tuple(names), rows=tuple(rows), message=seen.message)
    examples = [next((row[name] for row in seen.rows if row.get(name) is not None), None) for name in names]
    told = [(name, seen.types[name], "Yes", example) for name, example in zip(names, examples, strict=True)]
    told += [(f"({name})", "property", "", value) for name, value in seen.settings.items()]
    return Result(columns=("Field", "Type", "Null", "Example"), rows=tuple(told), message=seen.message)


def columns_of(session: Session, source: SourceFunction) -> tuple[ColumnDefinition, ...]:
    """The columns of a table for a source. Raises ConfigError when there is nothing yet to learn them from."""
    seen = look_at(session, source, SAMPLE_ROWS)
    folded = Counter(name.lower() for name in seen.types)
    strange = [name for name in seen.types if folded[name.lower()] > 1 or not _WATCH.can_add(name)]
    if strange:
        why = " beside one that differs by case alone" if any(map(_WATCH.can_add, strange)) else ""
        msg = f"{', '.join(map(repr, strange[:10]))} cannot be the name of a column{why}"
        raise ConfigError(msg, left="Nothing was made.", todo="Write the columns of the table yourself.")
    if not seen.types:
        msg = f"{source.name}(…) has nothing yet to learn columns from"
        raise ConfigError(msg, left="Nothing was made.", todo="Put a first file or record there, or name the columns.")
    return tuple(ColumnDefinition(name=name, type=kind) for name, kind in seen.types.items())


def look_at(session: Session, source: SourceFunction, most: int) -> Seen:
    """The first rows of a source. It needs the same rights as a job that loads from it."""
    if source.name not in (*FILES, *STREAMS):
        msg = f"{source.name}(…) cannot be looked at"
        raise SqlError(msg, place=source.span, hint=f"expected one of {', '.join((*FILES, *STREAMS))}")
    check_source(session, source)
    where, _ = kind_of(source.name).located(source.properties, {})
    lading = session.lading
    named = hosts_of(SourceSpec(kind=source.name, properties=where))
    rules = lading.endpoints.rules_for("", named, named if session.is_admin else ())
    properties = resolve_properties(where, home=lading.home.path)
    if source.name in FILES:
        return _look_at_files(session, source.name, properties, rules, most)
    return _look_at_stream(session, source.name, properties, rules, most)


def _look_at_files(session: Session, kind: str, given: Mapping[str, str], rules: AddressRules, most: int) -> Seen:
    seen = Seen()
    head, packed = _head_of(kind, given, rules)
    if head is None:
        seen.missing = f"no file matches {given['uri']}"
        return seen
    seen.settings = {**sniffed(*head, given), **packed}
    asked = read_file_source(kind, {**given, **seen.settings})
    spec = replace(files_spec_of(asked, FileIntake(), rules), missing_columns=MissingColumns.NULL)
    if spec.format is Format.JSON and not spec.json.jsonpaths:
        known: FilesSpec | None = replace(spec, schema=pa.schema([pa.field(REST, pa.string())]), watch=_WATCH)
    else:
        known = infer_schema(spec, clock=session.lading.clock)
    if known is None:
        return seen
    names = known.schema.names if known.schema is not None and known.watch is None else ()
    if reserved := [name for name in names if name in (*_HIDDEN, REST)]:
        msg = f"The files have a column {', '.join(map(repr, reserved))}, a name that Lading itself uses"
        raise ConfigError(msg, left="Nothing was changed.", todo="Rename it in the source.")
    source = FilesSource(known, clock=session.lading.clock)
    splits = source.plan(source.open("").partitions, Limits(files=64))
    _take(seen, read_splits(known, splits), most, is_typed=not known.format.is_text)
    return seen


def _head_of(
    kind: str, given: Mapping[str, str], rules: AddressRules
) -> tuple[tuple[str, bytes] | None, dict[str, str]]:
    """The first file and its first bytes, and how it is packed where its name does not say so."""

    def head_with(packed: Mapping[str, str]) -> tuple[str, bytes] | None:
        asked = read_file_source(kind, {"format": "csv", **given, **packed})
        return first_head(files_spec_of(asked, FileIntake(), rules))

    head = head_with({})
    found = packed_as(head[1]) if head is not None and "compress_type" not in given else ""
    return (head_with({"compress_type": found}), {"compress_type": found}) if found else (head, {})


def _look_at_stream(session: Session, kind: str, given: Mapping[str, str], rules: AddressRules, most: int) -> Seen:
    properties = {**_STARTS[kind], **given}
    load = LoadSpec(
        name="look",
        target="",
        source=SourceSpec(kind=kind, properties=properties),
        mapping=MappingSpec(columns=(ColumnSpec(is_star=True),), is_select=True),
        limits=LoadLimits(interval_s=_READ_S, size_bytes=MOST_BYTES, rows=most),
    )
    source_kind = kind_of(kind)
    source_kind.check(load)
    records = records_of(load)
    is_named = records.options.format != "csv"
    if not is_named and not records.columns:
        msg = "Records of csv have no names of columns"
        raise SqlError(msg, property="columns", todo='Say "columns" = "a, b, c", or "format" = "json".')
    context = OpenContext(
        reads_rows=True,
        consumer=f"lading-look-{session.user}",
        clock=session.lading.clock,
        addresses=rules,
        watch=_WATCH if is_named else None,
    )
    opened = source_kind.open(load, context)
    try:
        positions = opened.driver.open(opened.start)
        splits = opened.driver.plan(positions.partitions, Limits(rows=most, seconds=_READ_S))
        seen = Seen()
        _take(seen, opened.read(splits), most, is_typed=False)
        # What a registry promises, and not what the first records happen to have.
        seen.types = opened.registered() or seen.types
    finally:
        opened.close()
    return seen


def _take(seen: Seen, items: Iterable[Any], most: int, *, is_typed: bool) -> None:
    notes, kinds = FieldNotes(_WATCH), dict[str, str]()
    for batch in _batches(items, most):
        names = [name for name in batch.schema.names if name not in _HIDDEN]
        if is_typed:
            kinds |= {name: spark_name(batch.schema.field(name).type) for name in names}
        rows = pa.RecordBatch.from_arrays(
            [_loaded(batch.column(name)) for name in (*names, ERROR)], names=[*names, ERROR]
        ).to_pylist()
        for number, row in enumerate(rows):
            error = row.pop(ERROR)
            if error is not None:
                seen.bad += 1
                where = f"{batch.column(FILE)[number]}, row {batch.column(ROW)[number]}"
                seen.first_error = seen.first_error or f"{where}: {error}"
            else:
                rest = row.pop(REST, None)
                seen.rows.append(row if REST not in names else rest_fields(rest))
        if REST in names:
            notes.see_rest(batch.column(REST))
    told = notes.drain()
    names = list(dict.fromkeys(name for row in seen.rows for name in row))
    for name in names:
        texts = [row.get(name) for row in seen.rows]
        kind = kinds.get(name) or told.get(name) or text_type([None if each is None else str(each) for each in texts])
        seen.types[name] = "bigint" if kind == WHOLE else kind


def _loaded(column: pa.Array) -> pa.Array:
    """Nested values are shown as the texts that columns of the told type would get."""
    return json_texts(column) if pa.types.is_nested(column.type) else column


def _batches(items: Iterable[Any], most: int) -> Iterator[pa.RecordBatch]:
    """As many as it takes. What would come after them is not read."""
    left, room = most, MOST_BYTES
    for item in items:
        if isinstance(item, pa.RecordBatch):
            part = item.slice(0, left)
            yield part
            left, room = left - item.num_rows, room - part.nbytes
        if left <= 0 or room <= 0:
            return


def _shown(value: str) -> str:
    return {"\t": '"\\t"', "\x01": '"\\x01"'}.get(value, f'"{value}"' if value != '"' else "'\"'")
