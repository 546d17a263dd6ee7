"""A job from a form: source, table, mapping and policy, written as statements. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lading.service.result import Result
from lading.service.views.problems import QUARANTINE
from lading.sql.statements.jobs import CreateJob
from lading.sql.statements.parts import Expression, InsertSelect, QualifiedName, SelectItem, SourceFunction
from lading.sql.statements.tables import ColumnDefinition, CreateTable
from lading.sql.syntax.render import render
from lading.sql.syntax.render_parts import quoted_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One property of a source that a form asks for."""

    name: str
    label: str
    example: str = ""
    is_needed: bool = False
    is_secret: bool = False


KINDS: Mapping[str, tuple[Field, ...]] = {
    "S3": (
        Field(name="uri", label="Files", example="s3://shop/orders/*.csv", is_needed=True),
        Field(name="s3.region", label="Region"),
        Field(name="s3.endpoint", label="Endpoint, if it is not AWS"),
        Field(name="s3.access_key", label="Access key"),
        Field(name="s3.secret_key", label="Secret key", is_secret=True),
    ),
    "KAFKA": (
        Field(name="kafka_broker_list", label="Brokers", example="broker:9092", is_needed=True),
        Field(name="kafka_topic", label="Topic", is_needed=True),
    ),
    "KINESIS": (
        Field(name="kinesis_stream", label="Stream", is_needed=True),
        Field(name="aws.region", label="Region", is_needed=True),
        Field(name="aws.access_key", label="Access key"),
        Field(name="aws.secret_key", label="Secret key", is_secret=True),
    ),
    "FILE": (Field(name="uri", label="Files on the machine of the service", example="/in/*.csv", is_needed=True),),
}
BEGINNINGS: Mapping[str, Mapping[str, str]] = {
    "KAFKA": {"beginning": "OFFSET_BEGINNING", "now": "OFFSET_END"},
    "KINESIS": {"beginning": "TRIM_HORIZON", "now": "LATEST"},
}
_BEGIN_PROPERTY = {"KAFKA": "property.kafka_default_offsets", "KINESIS": "property.kinesis_default_pos"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped:
    """A column of the table, and what fills it; nothing when that is empty."""

    name: str
    type: str
    expression: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Guide:
    """What somebody has chosen so far."""

    kind: str = "S3"
    properties: Mapping[str, str] = field(default_factory=dict)
    more: str = ""
    """Other properties, one on a line: name = value."""
    begin: str = "beginning"
    found: Mapping[str, str] = field(default_factory=dict)
    """Properties that the preview found out."""
    table: str = ""
    makes: str = ""
    """The format of the table that is made first; empty for one that is there."""
    columns: Sequence[Mapped] = ()
    job: str = ""
    allows_bad_rows: bool = False
    interval_s: str = ""


def source_of(guide: Guide) -> SourceFunction:
    """The source as a statement names it."""
    wanted = {each.name for each in KINDS[guide.kind]}
    given = {name: value.strip() for name, value in guide.properties.items() if name in wanted and value.strip()}
    more = dict(_pairs(guide.more))
    start = {}
    if guide.kind in BEGINNINGS:
        start = {_BEGIN_PROPERTY[guide.kind]: BEGINNINGS[guide.kind][guide.begin], "format": "json"}
    return SourceFunction(name=guide.kind, properties={**start, **guide.found, **given, **more})


def is_same_source(one: Guide, other: Guide) -> bool:
    """Whether two forms name the same source, whatever a preview found out about it."""
    return source_of(replace(one, found={})) == source_of(replace(other, found={}))


def missing_of(guide: Guide) -> list[str]:
    """What is still to be filled in, in words."""
    source = source_of(guide).properties
    missing = [each.label for each in KINDS[guide.kind] if each.is_needed and each.name not in source]
    missing += ["the table"] if not guide.table.strip() else []
    missing += ["a preview of the source, for its columns"] if not _filled(guide) else []
    return missing + (["the name of the job"] if not guide.job.strip() else [])


def text_of(guide: Guide) -> str:
    """The statements; empty while something is missing."""
    if missing_of(guide):
        return ""
    database, _, name = guide.table.strip().rpartition(".")
    catalog, _, database = database.rpartition(".")
    table = QualifiedName(name=name, db=database or None, catalog=catalog or None)
    filled = _filled(guide)
    properties = dict(QUARANTINE) if guide.allows_bad_rows else {}
    if guide.interval_s.strip():
        properties["max_interval"] = guide.interval_s.strip()
    insert = InsertSelect(
        table=table,
        columns=tuple(column.name for column in filled),
        items=tuple(SelectItem(expression=Expression(text=column.expression.strip())) for column in filled),
        source=source_of(guide),
    )
    texts = [render(CreateJob(name=guide.job.strip(), properties=properties, insert=insert))]
    if guide.makes:
        columns = tuple(ColumnDefinition(name=column.name, type=column.type) for column in guide.columns)
        texts.insert(0, render(CreateTable(name=table, columns=columns, format=guide.makes, if_not_exists=True)))
    return ";\n\n".join(texts) + ";\n"


def seen_columns(described: Result) -> tuple[list[Mapped], dict[str, str]]:
    """The columns of a source as DESCRIBE FROM tells them, each filled by itself, and the properties it found out."""
    columns: list[Mapped] = []
    found: dict[str, str] = {}
    for row in described.dicts():
        name, kind = str(row["Field"]), str(row["Type"])
        if kind == "property":
            found[name.strip("()")] = str(row["Example"])
        else:
            columns.append(Mapped(name=name, type=kind, expression=quoted_name(name)))
    return columns, found


def mapped_to(described: Result, source: Sequence[Mapped]) -> list[Mapped]:
    """The columns of a table that is there, each filled by the column of the source that has its name."""
    by_name = {column.name.lower(): column.expression for column in source}
    return [
        Mapped(name=str(row["Field"]), type=str(row["Type"]), expression=by_name.get(str(row["Field"]).lower(), ""))
        for row in described.dicts()
    ]


def mapped_again(
    described: Result, before: Sequence[Mapped], now: Sequence[Mapped], columns: Sequence[Mapped]
) -> list[Mapped]:
    """The columns of a table when another source was seen: what somebody wrote stays, what a name filled is filled
    again.
    """
    old = {column.name: column.expression for column in mapped_to(described, before)}
    written = {column.name: column.expression for column in columns if column.expression != old.get(column.name)}
    return [
        replace(column, expression=written.get(column.name, column.expression)) for column in mapped_to(described, now)
    ]


def _filled(guide: Guide) -> list[Mapped]:
    return [column for column in guide.columns if column.expression.strip()]


def _pairs(lines: str) -> list[tuple[str, str]]:
    found = []
    for line in lines.splitlines():
        name, sign, value = line.partition("=")
        if sign and name.strip():
            found.append((name.strip().strip('"'), value.strip().strip('"').rstrip(",").rstrip('"')))
    return found
