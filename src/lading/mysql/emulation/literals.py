"""Queries that read no table and call no function: drivers make small tables of literals in this way."""

from __future__ import annotations

from sqlglot import exp

from lading.mysql.emulation.constants import Surroundings
from lading.mysql.emulation.tabular import ask
from lading.service.result import Result


def select_literals(tree: exp.Expr, around: Surroundings) -> Result | None:
    """The answer to SELECT, with UNION, WHERE and the like, over nothing but literals; None when there is more."""
    if not isinstance(tree, exp.Query) or any(tree.find_all(exp.Func, exp.Column, exp.Star)):
        return None
    tables = list(tree.find_all(exp.Table))
    if any(table.name.upper() != "DUAL" or table.db for table in tables):
        return None
    plain = tree.copy()
    for each in list(plain.find_all(exp.From)):
        if isinstance(each.this, exp.Table):
            each.pop()
    return ask({}, "nothing", plain, around)
