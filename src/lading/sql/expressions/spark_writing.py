"""Trees as Spark's SQL, with every name and text of a user in quotes.

sqlglot writes some names as they are, without quotes: that of a LATERAL VIEW is one. So it never sees them: it writes a
mark in the place of each, and a mark that does not stand in quotes afterwards is refused.
"""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.errors import SqlglotError

from lading.errors import NotSupportedError

_WORD = re.compile(r"[A-Za-z0-9_]+")
_PLAIN_TEXT = re.compile(r"[A-Za-z0-9_.+-]*")
"""Texts that sqlglot may read, because it does for some: the 1 of INTERVAL '1' DAY."""


def write_spark(tree: exp.Expr, *, identify: bool) -> str:
    """The text of a tree, which is changed on the way. `identify`: words that need no quotes get them, too."""
    odd = [node for node in tree.walk() if _is_odd(node)]
    prefix = "lading_mark_"
    while any(prefix in node.name for node in tree.find_all(exp.Identifier, exp.Literal)):
        prefix += "_"
    values: dict[str, str] = {}
    for number, node in enumerate(odd):
        mark = f"{prefix}{number}x"
        quoted = f"'{mark}'" if isinstance(node, exp.Literal) else f"`{mark}`"
        values[quoted] = node.sql(dialect="spark", identify=True, comments=False)
        node.set("this", mark)
    try:
        text = tree.sql(dialect="spark", identify=identify, comments=False)
    except (SqlglotError, RecursionError) as error:
        msg = "The expression cannot be written for Spark"
        raise NotSupportedError(msg, todo="Write it in a simpler way.") from error
    filled = re.sub("|".join(map(re.escape, values)), lambda found: values[found[0]], text) if values else text
    for node, (quoted, value) in zip(odd, values.items(), strict=True):
        if text.count(node.name) != text.count(quoted):
            msg = f"{value} cannot be used here: Spark would see it without its quotes"
            raise NotSupportedError(msg, hint="odd characters", todo="Use letters, digits and _ for this name.")
    return filled


def _is_odd(node: exp.Expr) -> bool:
    if isinstance(node, exp.Identifier):
        return not _WORD.fullmatch(node.name)
    return isinstance(node, exp.Literal) and node.is_string and not _PLAIN_TEXT.fullmatch(node.name)
