"""HAVING without GROUP BY: in MySQL it is a WHERE that sees the names of the select list."""

from __future__ import annotations

from sqlglot import exp


def without_lone_having(tree: exp.Expr) -> exp.Expr:
    """The same query in words that other databases know."""
    return tree.transform(_settled)


def _settled(node: exp.Expr) -> exp.Expr:
    if not isinstance(node, exp.Select) or node.args.get("having") is None or node.args.get("group") is not None:
        return node
    if any(node.find_all(exp.AggFunc)):
        return node
    named = {item.alias.lower(): item.this for item in node.selects if isinstance(item, exp.Alias)}

    def meant(part: exp.Expr) -> exp.Expr:
        found = named.get(part.name.lower()) if isinstance(part, exp.Column) and not part.table else None
        return exp.paren(found.copy()) if found is not None else part

    settled = node.copy()
    condition = settled.args["having"].this.transform(meant)
    settled.set("having", None)
    return settled.where(condition)
