"""Statements about databases and tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lading.model.table import Column, ColumnChange, PartitionField, TableSpec
from lading.sql.statements.parts import QualifiedName, SourceFunction
from lading.sql.syntax.spans import NOWHERE, Span

LENGTH_PROPERTY = "lading.length."
"""Table property `lading.length.<column>`: how many letters the column may hold at most."""
COMMENT_PROPERTY = "lading.comment."
"""Table property `lading.comment.<column>`: what people said about the column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDefinition:
    """One column of CREATE TABLE."""

    name: str
    type: str
    """The Spark SQL name of the type; `string` for CHAR(n) and VARCHAR(n)."""
    nullable: bool = True
    comment: str | None = None
    max_length: int | None = None
    """The n of CHAR(n) and VARCHAR(n)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """CREATE TABLE …"""

    name: QualifiedName
    columns: tuple[ColumnDefinition, ...]
    """None at all: the table that is at the location is adopted with those that it has."""
    format: str
    """In small letters. Which formats there are, the tables know."""
    format_span: Span = field(default=NOWHERE, compare=False, repr=False)
    partition_by: tuple[PartitionField, ...] = ()
    location: str | None = None
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    """What TBLPROPERTIES says, and no more."""
    if_not_exists: bool = False
    schema_of: SourceFunction | None = None
    """AS SCHEMA OF: the columns are those of this source; `columns` is empty then."""

    @property
    def spec(self) -> TableSpec:
        """The table as the table formats want it; comments and lengths are kept in its properties."""
        said: dict[str, str] = {}
        if self.comment is not None:
            said["comment"] = self.comment
        for column in self.columns:
            if column.max_length is not None:
                said[LENGTH_PROPERTY + column.name] = str(column.max_length)
            if column.comment is not None:
                said[COMMENT_PROPERTY + column.name] = column.comment
        columns = tuple(Column(name=c.name, type=c.type, nullable=c.nullable) for c in self.columns)
        return TableSpec(columns=columns, partition_by=self.partition_by, properties={**self.properties, **said})


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTable:
    """ALTER TABLE … ADD COLUMN …, ALTER TABLE … MODIFY COLUMN …"""

    name: QualifiedName
    changes: tuple[ColumnChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAt:
    """SELECT * FROM S3(…) [LIMIT n], DESCRIBE FROM S3(…): what a source has, before anything is loaded."""

    source: SourceFunction
    limit: int | None = 10
    """None: its columns are told, and not its rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTable:
    """DROP TABLE [IF EXISTS] … [PURGE]"""

    name: QualifiedName
    if_exists: bool = False
    is_purged: bool = False
    """PURGE: in a catalog of others, and for a table that was adopted, the files go with the name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDatabase:
    """CREATE DATABASE [IF NOT EXISTS] [catalog.]db"""

    name: str
    catalog: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropDatabase:
    """DROP DATABASE [IF EXISTS] [catalog.]db"""

    name: str
    catalog: str | None = None
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UseDatabase:
    """USE [catalog.]db"""

    name: str
    catalog: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowDatabases:
    """SHOW DATABASES [FROM catalog]"""

    catalog: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowTables:
    """SHOW TABLES [FROM [catalog.]db]"""

    db: str | None = None
    catalog: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTable:
    """DESCRIBE …"""

    name: QualifiedName
