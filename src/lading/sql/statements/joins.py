"""What a join of a streaming job may be."""

from __future__ import annotations

from lading.errors import NotSupportedError, SqlError
from lading.model.load import DedupSpec, JoinSpec
from lading.sql.expressions.mapping import translate_expression
from lading.sql.expressions.sides import is_equality_of_sides
from lading.sql.statements.parts import InsertSelect, TableJoin
from lading.sql.syntax.spans import Span


def join_sides(insert: InsertSelect) -> tuple[str, ...]:
    """What the statement calls its source, and its table or second stream; nothing where it joins nothing."""
    join = insert.join or insert.stream_join
    return () if join is None else (insert.source_alias or "", join.alias)


def join_spec(join: TableJoin) -> JoinSpec:
    """The join as the record of the job keeps it."""
    return JoinSpec(table=str(join.table), alias=join.alias, on=join.on.text, is_left=join.is_left)


def check_join(insert: InsertSelect, dedup: DedupSpec | None) -> None:
    """Refuse what a join cannot do, by name."""
    join = insert.join
    if join is None:
        return
    check_alone(insert, dedup, join.table.span, "the table")
    on = translate_expression(join.on, sides=join_sides(insert))
    if not is_equality_of_sides(on.origin.tree, join.alias):
        msg = "The condition of a join has to ask for something of the source that equals something of the table"
        raise SqlError(msg, place=join.on.span, hint="no equality of both sides", todo="Write ON s.k = d.k [AND …].")


def check_alone(insert: InsertSelect, dedup: DedupSpec | None, place: Span, other: str) -> None:
    """Refuse what cannot be together with a join. `other`: what rows are joined with, in words."""
    if insert.group_by:
        msg = "A JOIN together with GROUP BY window(…) is not supported"
        todo = "Write the joined rows to a table, and count them when you read it; or leave one of the two out."
        raise NotSupportedError(msg, place=place, hint="not together", todo=todo)
    if dedup is not None:
        msg = "A JOIN together with dedup.keys is not supported"
        raise NotSupportedError(msg, place=place, hint="not together", todo="Leave one of the two out.")
    for item in insert.items:
        if item.is_star:
            msg = f"A star cannot be used in a join: a column that somebody adds to {other} would be in the way"
            raise NotSupportedError(msg, place=item.expression.span, hint="not in a join", todo="Name the columns.")
