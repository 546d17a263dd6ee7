"""What statements are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from lading.model.names import INTERNAL, database_key, split_key
from lading.sql.syntax.spans import NOWHERE, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class QualifiedName:
    """The name of a table or job, with its database and its catalog when they were written."""

    name: str
    db: str | None = None
    catalog: str | None = None
    """Never without a database."""
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return ".".join(part for part in (self.catalog, self.db, self.name) if part is not None)

    def within(self, current: str) -> str:
        """The database that it means where `current` is the one in use, with its catalog: `db` or `catalog.db`."""
        if self.db is None:
            return current
        return database_key(self.catalog or split_key(current)[0], self.db)

    def bound(self, current: str) -> QualifiedName:
        """The same name, written out: it means the same wherever it is read."""
        catalog, db = split_key(self.within(current))
        return replace(self, catalog=None if catalog == INTERNAL else catalog, db=db)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """An expression as it was written, and where."""

    text: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFunction:
    """S3(…), FILE(…), KAFKA(…), KINESIS(…), jobs(…), tasks(…): a name and properties."""

    name: str
    """In capitals; of a pair of streams both, as in FILE+KAFKA."""
    properties: Mapping[str, str] = field(default_factory=dict)
    span: Span = field(default=NOWHERE, compare=False, repr=False)


class MergeType(Enum):
    """What a row does to the table."""

    APPEND = "APPEND"
    MERGE = "MERGE"
    DELETE = "DELETE"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMapping:
    """One item of COLUMNS: a source column, or a column derived by an expression."""

    name: str
    expression: Expression | None = None
    """None: the column is read from the source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionNames:
    """PARTITION (p1, p2) of a routine load."""

    names: tuple[str, ...]
    temporary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadClauses:
    """The clauses of a routine load between its head and its PROPERTIES. None: not written."""

    column_separator: str | None = None
    columns: tuple[ColumnMapping, ...] | None = None
    preceding_filter: Expression | None = None
    where: Expression | None = None
    delete_on: Expression | None = None
    order_by: str | None = None
    partitions: PartitionNames | None = None


NO_CLAUSES = LoadClauses()


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectItem:
    """One column of a job's SELECT. Columns go to the target by their place, not by their name."""

    expression: Expression
    alias: str | None = None

    @property
    def is_star(self) -> bool:
        """All columns of the source, in its order."""
        return self.expression.text == "*" or self.expression.text.endswith(".*")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableJoin:
    """[LEFT] JOIN table AS alias ON condition: rows of the source are looked up in a table."""

    table: QualifiedName
    alias: str
    on: Expression
    is_left: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamJoin:
    """[LEFT] JOIN source(…) AS alias ON condition: the source of the statement is a pair then."""

    alias: str
    on: Expression
    is_left: bool = False
    spans: tuple[Span, Span] = field(default=(NOWHERE, NOWHERE), compare=False, repr=False)
    """Where both sources are written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertSelect:
    """INSERT INTO table (columns) SELECT … FROM source WHERE …: what a streaming job does for ever."""

    table: QualifiedName
    columns: tuple[str, ...] = ()
    """Columns of the target in the order of the SELECT. Empty: all of them, in the table's order."""
    by_name: bool = False
    """BY NAME: each item fills the column of its name, and `columns` are those that may be filled."""
    items: tuple[SelectItem, ...]
    source: SourceFunction
    source_alias: str | None = None
    join: TableJoin | None = None
    stream_join: StreamJoin | None = None
    where: Expression | None = None
    group_by: tuple[Expression, ...] = ()
    """A window and keys. Empty: rows are loaded as they are."""
    having: Expression | None = None
