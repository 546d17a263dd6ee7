"""Statements as the audit log keeps them: without secrets, and not longer than was set.

A statement that was parsed is rendered again with its secrets masked by their names, and searched for those that are
known by value. A text that could not be parsed may hold a secret anywhere: a password typed at the wrong prompt, a
string whose quote is missing. Only what begins like a statement is kept of such a text, without strings and comments,
up to the first word that could announce a secret; of anything else, nothing but the length.
"""

from __future__ import annotations

import re

from lading.service.security.redaction import redact
from lading.sql.statements.jobs import Statement
from lading.sql.syntax.masking import mask
from lading.sql.syntax.render import render
from lading.sql.syntax.spans import MASK, is_secret

_BEGINNINGS = re.compile(
    r"""(?:ACCEPT|ALTER|ANALYZE|BEGIN|CALL|COMMIT|CREATE|DEALLOCATE|DELETE|DESC|DESCRIBE|DROP|EXECUTE|EXPLAIN|GRANT|INSERT|KILL
      |LOAD|PAUSE|PREPARE|REPLAY|REVOKE|RESUME|ROLLBACK|SELECT|SET|SHOW|START|STOP|TRUNCATE|UNDO|UPDATE|USE|WITH)\s""",
    re.IGNORECASE | re.VERBOSE,
)
_HIDDEN_PART = re.compile(
    r"""'(?:[^'\\]|\\.|'')*+(?:'|\Z) | "(?:[^"\\]|\\.|"")*+(?:"|\Z) | /\*.*?(?:\*/|\Z) | --[^\n]*+ | \#[^\n]*+""",
    re.VERBOSE | re.DOTALL,
)
_WORD = re.compile(r"[A-Za-z_][\w.\-]*")
_ANNOUNCES = frozenset({"IDENTIFIED", "USER", "AUTH", "AUTHORIZATION", "BEARER"})
UNPARSED_CHARACTERS = 500
_LOOKED_AT = 4000


def statement_text(statement: Statement, most: int) -> str:
    """A statement that was parsed."""
    return cut(redact(render(mask(statement))), most)


def unparsed_text(text: str, most: int) -> str:
    """A text that is no statement of ours."""
    head = text if len(text) <= _LOOKED_AT else text[:_LOOKED_AT].rpartition(" ")[0]
    shown = redact(_HIDDEN_PART.sub(lambda part: _emptied(part[0]), head)).strip()
    if not _BEGINNINGS.match(f"{shown} "):
        return f"({len(text)} characters that are no statement)"
    for word in _WORD.finditer(shown):
        if word[0].upper() in _ANNOUNCES or is_secret(word[0]):
            return cut(f"{shown[: word.end()]} {MASK}", min(most, UNPARSED_CHARACTERS))
    return cut(shown, min(most, UNPARSED_CHARACTERS))


def _emptied(part: str) -> str:
    return f"{part[0]}{MASK}{part[0]}" if part[0] in "'\"" else " "


def cut(text: str, most: int) -> str:
    """The beginning of a text that is too long. What is redacted must be so before."""
    return text if len(text) <= most else f"{text[:most]} … ({len(text)} characters)"
