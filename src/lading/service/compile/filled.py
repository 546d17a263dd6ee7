"""Which column of the table each item of a SELECT fills: by place, or BY NAME."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from lading.errors import ConfigError, SqlError
from lading.sql.expressions.mapping import SparkExpression, column_expression
from lading.sql.statements.definitions import MappedColumn
from lading.suggest import did_you_mean


def unknown_targets(unknown: Sequence[str], names: Sequence[str]) -> ConfigError:
    """Columns are to be filled that the table does not have."""
    msg = f"Unknown column {', '.join(repr(name) for name in unknown)} in the target table"
    near = "".join(did_you_mean(name, names) for name in unknown)
    return ConfigError(msg, left="Nothing was changed.", todo=f"{near}It has: {', '.join(names)}.")


def check_one(source: Sequence[str], used: Iterable[SparkExpression]) -> None:
    """Refuse to read a column that another one of the source differs from by case alone: Spark knows no difference."""
    forms = Counter(name.lower() for name in source)
    for name in (name for expression in used for name in expression.columns):
        if forms[name.lower()] > 1:
            same = [each for each in source if each.lower() == name.lower()]
            msg = f"The source has the columns {', '.join(same)}, which differ by case alone: {name} may mean each"
            raise SqlError(msg, todo="Rename one of them where the files are made, or leave them out of the SELECT.")


def filled_by_place(
    items: Sequence[MappedColumn], names: Sequence[str], source: Sequence[str], knows: str
) -> dict[str, SparkExpression]:
    """The first item fills the first column. `*` is all columns of the source, in its order."""
    given: list[SparkExpression] = []
    for item in items:
        if item.is_star:
            given += [column_expression(name) for name in source]
        elif item.expression is not None:
            given.append(item.expression)
    if len(names) != len(given):
        msg = (
            f"insert into cols should be corresponding to the query output: {len(names)} columns are to be filled "
            f"and {len(given)} are selected"
        )
        todo = "Select one expression for each column, or write INSERT INTO t BY NAME SELECT …."
        raise SqlError(msg, todo=f"{todo} {knows}".strip())
    if all(item.is_star for item in items):
        _refuse_other_order(names, source)
    return dict(zip(names, given, strict=True))


def _refuse_other_order(names: Sequence[str], source: Sequence[str]) -> None:
    """With the same names in another order, filling by place would swap columns."""
    wanted, found = [name.lower() for name in names], [name.lower() for name in source]
    if wanted != found and sorted(wanted) == sorted(found):
        msg = f"SELECT * fills columns by place, and the source has them in another order: {', '.join(source)}"
        raise SqlError(msg, todo="Write INSERT INTO t BY NAME SELECT *, or select the columns in the table's order.")


def filled_by_name(
    items: Sequence[MappedColumn], names: Sequence[str], source: Sequence[str], knows: str
) -> dict[str, SparkExpression]:
    """Each item fills the column of its name; of `*` those fields count that the table has a column for."""
    by_form = {name.lower(): name for name in names}
    found: dict[str, SparkExpression] = {}
    for name, expression in _named(items, [name for name in source if name.lower() in by_form]):
        if name.lower() not in by_form:
            raise unknown_targets([name], names)
        if (target := by_form[name.lower()]) in found:
            msg = f"Two items of the SELECT fill the column {target}"
            raise SqlError(msg, todo="Give one of them another name, or leave it out.")
        found[target] = expression
    if not found:
        msg = "No column of the source has the name of a column of the table"
        raise SqlError(msg, todo=f"{knows} The table has: {', '.join(names)}.".strip())
    return found


def _named(items: Sequence[MappedColumn], stars: Sequence[str]) -> list[tuple[str, SparkExpression]]:
    found = list[tuple[str, SparkExpression]]()
    for item in items:
        if item.is_star:
            found += [(name, column_expression(name)) for name in stars]
        elif item.expression is not None:
            if item.name is None and not item.expression.is_column:
                msg = f"BY NAME needs the name of the column that {item.expression.text} fills"
                raise SqlError(msg, todo="Write … AS name.")
            found.append((item.name or item.expression.columns[0], item.expression))
    return found
