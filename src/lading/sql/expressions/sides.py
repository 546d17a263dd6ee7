"""Columns of a join: each is written with the name of its side, and called so from then on."""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from lading.errors import NotSupportedError, SqlError
from lading.sql.expressions.dialect import has_unit, place_of
from lading.sql.syntax.spans import Span


def side_column(side: str, column: str) -> str:
    """What a column of one side is called behind the join."""
    return f"{side.lower()}.{column}"


def column_of_side(name: str, side: str) -> str | None:
    """The column of a side that such a name stands for; None: it is one of the other side."""
    prefix = side_column(side, "")
    return name.removeprefix(prefix) if name.startswith(prefix) else None


def sided_columns(tree: exp.Expr, sides: Collection[str], span: Span) -> exp.Expr:
    """The tree with `d.name` as one name. Raises SqlError for a column that does not say its side.

    A name without a side could mean another column as soon as somebody adds one to the table.
    """
    holder = exp.Paren(this=tree.copy())
    known = {side.lower() for side in sides}
    for node in list(holder.find_all(exp.Column)):
        if _is_no_column(node):
            continue
        if not isinstance(node.this, exp.Identifier):
            msg = "A star cannot be used in a join"
            raise NotSupportedError(msg, place=place_of(node, span), hint="not possible here", todo="Name the columns.")
        if node.table.lower() not in known or node.db:
            words = " or ".join(f"{side}.{node.name}" for side in sides)
            msg = f"{node.sql(dialect='doris')} does not say which side of the join it is of"
            raise SqlError(msg, place=place_of(node, span), hint="which side?", todo=f"Write {words}.")
        name = exp.Identifier(this=side_column(node.table, node.name), quoted=True)
        name.meta.update(node.this.meta)
        node.replace(exp.Column(this=name))
    found: exp.Expr = holder.this
    found.pop()
    return found


def is_equality_of_sides(tree: exp.Expr, side: str) -> bool:
    """Whether a condition asks that something of this side equals something of the other one, among what it asks."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.And):
        return is_equality_of_sides(tree.left, side) or is_equality_of_sides(tree.right, side)
    if not isinstance(tree, exp.EQ | exp.NullSafeEQ):
        return False
    found = [
        {column_of_side(node.name, side) is None for node in part.find_all(exp.Column)}
        for part in (tree.left, tree.right)
    ]
    return found in ([{True}, {False}], [{False}, {True}])


def _is_no_column(node: exp.Column) -> bool:
    """The HOUR of TIMESTAMPDIFF(HOUR, a, b), and the x of a lambda around it."""
    parent = node.parent
    if isinstance(parent, exp.Anonymous) and has_unit(parent) and parent.expressions[0] is node:
        return True
    around = node.find_ancestor(exp.Lambda)
    while around is not None:
        if not node.table and node.name in (argument.name for argument in around.expressions):
            return True
        around = around.find_ancestor(exp.Lambda)
    return not node.table and node.name.lower() in ("current_date", "current_timestamp", "localtimestamp", "curdate")
