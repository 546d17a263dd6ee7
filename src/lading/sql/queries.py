"""Queries over Lading's own tables, for whichever engine answers them."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from lading.errors import NotSupportedError
from lading.sql.dialect import parse_query_tree
from lading.sql.spans import Span
from lading.sql.statements import Query


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
