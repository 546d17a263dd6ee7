"""Queries over Lading's own tables, for whichever engine answers them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from lading.errors import NotSupportedError
from lading.sql.expressions.dialect import has_unit, is_unit, parse_query_tree, place_of
from lading.sql.expressions.query_parts import NODES, QUERY_FUNCTIONS, TABLE_PARTS
from lading.sql.expressions.spark_functions import REFUSED_FUNCTIONS
from lading.sql.expressions.spark_writing import write_spark
from lading.sql.statements.jobs import Query
from lading.sql.statements.parts import QualifiedName
from lading.sql.syntax.spans import Span

SCHEMA = "information_schema"
_WORD, _WORDS = re.compile(r"\w+"), re.compile(r"[\w ]*")
_SHORT = re.compile(r"\d{1,9}")
_NUMBER = re.compile(r"[\w.]+(?:[eE][+-]?\d+)?")


def rewrite_query(query: Query, tables: Mapping[str, str], *, dialect: str = "sqlite") -> str:
    """The text of a query in another dialect, with a table in the place of each table function.

    `tables` says which table stands for a function, by its name in capitals: {"JOBS": "jobs"}.
    """
    span = Span(query.text, 0, len(query.text))
    tree = parse_query_tree(query.text, span).copy()
    for table in tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Anonymous):
            continue
        name = table.this.name.upper()
        if name not in tables:
            msg = f"There is no table function {name.lower()}"
            known = ", ".join(sorted(known.lower() for known in tables))
            raise NotSupportedError(msg, place=span, hint="unknown function", todo=f"Known are: {known}.")
        table.set("this", exp.to_identifier(tables[name]))
    return tree.sql(dialect=dialect, comments=False)


def is_about_jobs(query: Query) -> bool:
    """Whether a query is answered from what Lading knows of its jobs, and sees no table at all."""
    if query.functions:
        return True
    tree = parse_query_tree(query.text, Span(query.text, 0, len(query.text)))
    return any(found.db.lower() == SCHEMA for found in tree.find_all(exp.Table))


def literal_row(query: Query) -> dict[str, int | str | None] | None:
    """The one row of a query that says all its values itself, `SELECT 1`; None when an engine must answer it."""
    tree = parse_query_tree(query.text, Span(query.text, 0, len(query.text)))
    if not isinstance(tree, exp.Select) or any(value for name, value in tree.args.items() if name != "expressions"):
        return None
    found: dict[str, int | str | None] = {}
    for part in tree.expressions:
        value = part.this if isinstance(part, exp.Alias) else part
        is_null = isinstance(value, exp.Null)
        if not is_null and not (isinstance(value, exp.Literal) and (value.is_string or _SHORT.fullmatch(value.name))):
            return None
        name = part.alias or ("NULL" if is_null else value.name)
        if name in found or "\\" in value.name:
            return None
        found[name] = None if is_null else value.name if value.is_string else int(value.name)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class TableQuery:
    """A query that holds nothing but what was checked: parts of queries, known functions, tables of the catalog.

    Laws: `tables` are all the tables it reads, however deep they stand. The text of `render` names no table but the
    views it was given: not even the names that the query itself gives to its parts are those that were written.
    """

    tables: frozenset[QualifiedName]
    """As they were written, with or without a database."""
    _tree: exp.Expr

    def render(self, views: Mapping[QualifiedName, str], new_name: Callable[[], str]) -> str:
        """The query in Spark's words, with a view in the place of each table."""
        tree = self._tree.copy()
        bound = [(table, _cte_of(table)) for table in tree.find_all(exp.Table)]
        renamed = {id(cte): new_name() for cte in tree.find_all(exp.CTE)}
        for table, cte in bound:
            if not table.alias:
                _name(table, table.name)
            stands = views[_written(table)] if cte is None else renamed[id(cte)]
            table.set("this", exp.to_identifier(stands, quoted=True))
            table.set("db", None)
            table.set("catalog", None)
        for cte in tree.find_all(exp.CTE):
            cte.args["alias"].set("this", exp.to_identifier(renamed[id(cte)], quoted=True))
        return write_spark(tree, identify=False)


def read_query(query: Query) -> TableQuery:
    """Check a query over tables. Raises NotSupportedError for anything that is not known to do no more than read."""
    span = Span(query.text, 0, len(query.text))
    tree = parse_query_tree(query.text, span).copy()
    what = "" if isinstance(tree, exp.Query) else "This is not a query"
    for hint in list(tree.find_all(exp.Hint)):
        hint.pop()  # It changes no answer, and its words are those of another engine.
    for node in tree.walk():
        if what := what or _problem(node):
            place, todo = place_of(node, span, shift=0), "A query only reads tables."
            if isinstance(node, exp.Table):
                todo += ' To look at files: SELECT * FROM FILE("uri" = "…") LIMIT 10.'
            raise NotSupportedError(what, place=place, hint="not possible here", todo=todo)
        if isinstance(node, exp.Identifier) and not _WORD.fullmatch(node.name):
            node.set("quoted", True)
    tables = (table for table in tree.find_all(exp.Table) if _cte_of(table) is None)
    return TableQuery(tables=frozenset(_written(table) for table in tables), _tree=tree)


def _problem(node: exp.Expr) -> str:
    """What is wrong with one part of a query; empty when it does no more than read."""
    if type(node) not in NODES:
        return f"{type(node).__name__} cannot be used in a query"
    if isinstance(node, exp.Anonymous):
        return _call_problem(node)
    if isinstance(node, exp.Table):
        written = {name for name, part in node.args.items() if part}
        is_named = isinstance(node.this, exp.Identifier) and written <= TABLE_PARTS
        is_plain = is_named and "." not in node.name
        return "" if is_plain else f"{node.sql(dialect='doris')} is not a table of a database"
    if isinstance(node, exp.DataType) and node.this is exp.DataType.Type.USERDEFINED:
        return f"{node.sql(dialect='doris')} is not a type"
    if isinstance(node, exp.CTE) and not node.alias:
        return "A common table expression needs a name"
    return _word_problem(node)


def _call_problem(node: exp.Anonymous) -> str:
    name = node.name.lower()
    if name not in QUERY_FUNCTIONS or isinstance(node.parent, exp.Dot):
        reason = REFUSED_FUNCTIONS.get(name)
        return f"Function {name} cannot be used in a query" + (f": {reason}" if reason else "")
    if has_unit(node) and not is_unit(node.expressions[0]):
        return f"{node.expressions[0].sql(dialect='doris')} is not a unit of time"
    return ""


def _word_problem(node: exp.Expr) -> str:
    """What is written as it is, without quotes, must be a word or a number."""
    if isinstance(node, exp.Identifier) or (isinstance(node, exp.Literal) and node.is_string):
        return ""
    form = _NUMBER if isinstance(node, exp.Literal) else _WORDS
    parts = [part for value in node.args.values() for part in (value if isinstance(value, list) else [value])]
    odd = next((part for part in parts if isinstance(part, str) and not form.fullmatch(part)), None)
    return "" if odd is None else f"{odd!r} cannot be used in a query"


def _written(table: exp.Table) -> QualifiedName:
    return QualifiedName(name=table.name, db=table.db or None, catalog=table.catalog or None)


def _name(table: exp.Table, name: str) -> None:
    """Let columns be called by the name that was written; names of the columns stay."""
    alias = table.args.get("alias") or exp.TableAlias()
    alias.set("this", exp.to_identifier(name, quoted=True))
    table.set("alias", alias)


def _cte_of(table: exp.Table) -> exp.CTE | None:
    """The common table expression that a name means where it is; None: it means a table of the catalog.

    A WITH counts for the query it belongs to, and, within itself, for the expressions behind each; for an expression
    itself only when it is recursive. The innermost one counts.
    """
    if table.db:
        return None
    below: exp.Expr | None = table
    around = table.parent
    while around is not None:
        if isinstance(around, exp.With):
            before = around.expressions[: _index(around, below)]
            if found := _named(before, table.name):
                return found
            if around.recursive and isinstance(below, exp.CTE) and _named([below], table.name):
                return below
            # The query that this WITH belongs to has no other names for its own expressions.
            below, around = around.parent, around.parent.parent if around.parent else None
            continue
        own = around.args.get("with_")
        if own is not None and own is not below and (found := _named(own.expressions, table.name)):
            return found
        below, around = around, around.parent
    return None


def _index(around: exp.With, below: exp.Expr | None) -> int:
    return next(number for number, cte in enumerate(around.expressions) if cte is below)


def _named(ctes: list[exp.Expr], name: str) -> exp.CTE | None:
    # The last of a name is found first; Spark refuses two of them.
    return next((cte for cte in reversed(ctes) if isinstance(cte, exp.CTE) and cte.alias.lower() == name.lower()), None)
