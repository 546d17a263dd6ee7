"""Text to statements."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lading.deferred import deferred
from lading.errors import SqlError
from lading.sql.statements.admin import parse_clean_orphans, parse_show_services
from lading.sql.statements.audit import parse_show_audit
from lading.sql.statements.compaction import (
    parse_compact_table,
    parse_optimize,
    parse_show_compaction,
)
from lading.sql.statements.jobs import Statement
from lading.sql.syntax.cursor import Cursor
from lading.sql.syntax.parse_catalog import (
    parse_alter_catalog,
    parse_create_catalog,
    parse_drop_catalog,
    parse_refresh_catalog,
    parse_show_catalogs,
    parse_show_create_catalog,
    parse_switch,
)
from lading.sql.syntax.parse_edit import (
    parse_accept_rollback,
    parse_alter_job_or_accept,
    parse_alter_routine_load_or_accept,
    parse_explain_alter,
    parse_explain_create,
    parse_explain_replay,
    parse_explain_routine_load,
    parse_file_word,
    parse_replay_errors,
    parse_show_rollback,
    parse_undo_alter,
)
from lading.sql.syntax.parse_job import (
    parse_control_job,
    parse_create_job,
    parse_explain_job,
    parse_query,
    parse_show_create_job,
    parse_show_jobs,
    parse_show_load,
)
from lading.sql.syntax.parse_routine import (
    parse_control_all,
    parse_control_routine_load,
    parse_create_routine_load,
    parse_show_create_routine_load,
    parse_show_routine_load,
)
from lading.sql.syntax.parse_table import (
    parse_alter_table,
    parse_create_database,
    parse_create_table,
    parse_describe,
    parse_drop_database,
    parse_drop_table,
    parse_show_databases,
    parse_show_tables,
    parse_use,
)
from lading.sql.syntax.parse_user import (
    parse_alter_user,
    parse_create_role,
    parse_create_token,
    parse_create_user,
    parse_drop_role,
    parse_drop_token,
    parse_drop_user,
    parse_grant,
    parse_revoke,
    parse_show_grants,
    parse_show_roles,
    parse_show_tokens,
    parse_show_users,
)
from lading.sql.syntax.tokens import Kind

if TYPE_CHECKING:
    from lading.sql.expressions.dialect import too_deep
else:
    too_deep = deferred("lading.sql.expressions.dialect", "too_deep")

_FORMS: tuple[tuple[str, Callable[[Cursor], Statement]], ...] = (
    ("CREATE JOB", parse_create_job),
    ("CREATE ROUTINE LOAD", parse_create_routine_load),
    ("CREATE TABLE", parse_create_table),
    ("CREATE DATABASE", parse_create_database),
    ("CREATE CATALOG", parse_create_catalog),
    ("CREATE USER", parse_create_user),
    ("CREATE ROLE", parse_create_role),
    ("CREATE TOKEN", parse_create_token),
    ("ALTER JOB", parse_alter_job_or_accept),
    ("ALTER ROUTINE LOAD", parse_alter_routine_load_or_accept),
    ("ALTER CATALOG", parse_alter_catalog),
    ("ALTER USER", parse_alter_user),
    ("PAUSE JOB", parse_control_job),
    ("PAUSE ROUTINE LOAD", parse_control_routine_load),
    ("PAUSE ALL ROUTINE LOAD", parse_control_all),
    ("RESUME JOB", parse_control_job),
    ("RESUME ROUTINE LOAD", parse_control_routine_load),
    ("RESUME ALL ROUTINE LOAD", parse_control_all),
    ("STOP ROUTINE LOAD", parse_control_routine_load),
    ("DROP JOB", parse_control_job),
    ("DROP TABLE", parse_drop_table),
    ("DROP DATABASE", parse_drop_database),
    ("DROP CATALOG", parse_drop_catalog),
    ("DROP USER", parse_drop_user),
    ("DROP ROLE", parse_drop_role),
    ("DROP TOKEN", parse_drop_token),
    ("GRANT", parse_grant),
    ("REVOKE", parse_revoke),
    ("SHOW ROUTINE LOAD", parse_show_routine_load),
    ("SHOW ALL ROUTINE LOAD", parse_show_routine_load),
    ("SHOW CREATE ROUTINE LOAD", parse_show_create_routine_load),
    ("SHOW ALL CREATE ROUTINE LOAD", parse_show_create_routine_load),
    ("SHOW JOBS", parse_show_jobs),
    ("SHOW CREATE JOB", parse_show_create_job),
    ("SHOW LOAD", parse_show_load),
    ("SHOW DATABASES", parse_show_databases),
    ("SHOW TABLES", parse_show_tables),
    ("SHOW CATALOGS", parse_show_catalogs),
    ("SHOW CREATE CATALOG", parse_show_create_catalog),
    ("SHOW GRANTS", parse_show_grants),
    ("SHOW USERS", parse_show_users),
    ("SHOW ROLES", parse_show_roles),
    ("SHOW TOKENS", parse_show_tokens),
    ("SHOW AUDIT", parse_show_audit),
    ("ADMIN CLEAN ORPHANS", parse_clean_orphans),
    ("ADMIN COMPACT TABLE", parse_compact_table),
    ("OPTIMIZE", parse_optimize),
    ("SHOW COMPACTION", parse_show_compaction),
    ("ALTER TABLE", parse_alter_table),
    ("SHOW SERVICES", parse_show_services),
    ("EXPLAIN JOB", parse_explain_job),
    ("EXPLAIN ROUTINE LOAD", parse_explain_routine_load),
    ("EXPLAIN CREATE JOB", parse_explain_create),
    ("EXPLAIN CREATE ROUTINE LOAD", parse_explain_create),
    ("EXPLAIN ALTER JOB", parse_explain_alter),
    ("EXPLAIN ALTER ROUTINE LOAD", parse_explain_alter),
    ("EXPLAIN SKIP FILE", parse_explain_alter),
    ("EXPLAIN LOAD FILE", parse_explain_alter),
    ("SKIP FILE", parse_file_word),
    ("LOAD FILE", parse_file_word),
    ("REPLAY ERRORS", parse_replay_errors),
    ("EXPLAIN REPLAY ERRORS", parse_explain_replay),
    ("SHOW ROLLBACK", parse_show_rollback),
    ("ACCEPT ROLLBACK", parse_accept_rollback),
    ("UNDO ALTER JOB", parse_undo_alter),
    ("UNDO ALTER ROUTINE LOAD", parse_undo_alter),
    ("DESCRIBE", parse_describe),
    ("DESC", parse_describe),
    ("USE", parse_use),
    ("SWITCH", parse_switch),
    ("REFRESH CATALOG", parse_refresh_catalog),
    ("SELECT", parse_query),
    ("WITH", parse_query),
)
FORMS = tuple(words for words, _ in _FORMS)
"""The first words of all statements."""


Check = Callable[[str], None]
"""Called with the first words of each statement, such as CREATE JOB, before the rest of it is read."""


def parse_statements(text: str, check: Check = lambda form: None) -> tuple[Statement, ...]:
    """All statements of a text, which are separated by semicolons."""
    cursor = Cursor(text)
    found: list[Statement] = []
    while cursor.token.kind is not Kind.END:
        if cursor.accept_symbol(";"):
            continue
        found.append(_statement(cursor, check))
    return tuple(found)


def parse_statement(text: str, check: Check = lambda form: None) -> Statement:
    """The only statement of a text."""
    cursor = Cursor(text)
    while cursor.accept_symbol(";"):
        continue
    found = _statement(cursor, check)
    while cursor.accept_symbol(";"):
        continue
    if cursor.token.kind is not Kind.END:
        msg = "There is more than one statement"
        raise SqlError(msg, place=cursor.token.span, hint="a second statement", todo="Send them one by one.")
    return found


def _statement(cursor: Cursor, check: Check) -> Statement:
    for words, parser in _FORMS:
        if cursor.sees(*words.split()):
            check(words)
            statement = _parsed(cursor, parser)
            if not cursor.is_done:
                cursor.fail("the end of the statement")
            return statement
    raise _unknown_form(cursor)


def _parsed(cursor: Cursor, parser: Callable[[Cursor], Statement]) -> Statement:
    first = cursor.token.span
    try:
        return parser(cursor)
    except RecursionError as error:
        raise too_deep(first) from error


_BY_JOBS = "Rows come by jobs: CREATE JOB … ON STREAMING DO INSERT …, or CREATE ROUTINE LOAD …; see docs/sql.md."
_BY_ENGINES = "Lading only adds rows. Change them with an engine of yours, beside the jobs: see docs/engines.md."
_NOT_HERE = {
    "INSERT": _BY_JOBS,
    "LOAD": _BY_JOBS,
    "COPY": _BY_JOBS,
    "UPDATE": _BY_ENGINES,
    "DELETE": _BY_ENGINES,
    "MERGE": _BY_ENGINES,
    "TRUNCATE": _BY_ENGINES,
    "HELP": "help is a word of the shell: run lading sql without a statement. docs/sql.md has all of them.",
    "SHOW COLUMNS": "DESCRIBE db.table shows the columns of a table; DESCRIBE FROM FILE(…) those of files.",
    "SHOW FIELDS": "DESCRIBE db.table shows the columns of a table; DESCRIBE FROM FILE(…) those of files.",
    "SHOW ERRORS": "SHOW LOAD ERRORS FOR job shows the bad rows of a job; REPLAY ERRORS FOR job loads them again.",
    "SHOW CREATE TABLE": "DESCRIBE db.table shows its columns; SHOW CREATE is for jobs, routine loads and catalogs.",
    "EXPLAIN SELECT": "EXPLAIN is for loads: EXPLAIN JOB name, EXPLAIN CREATE JOB …, EXPLAIN ALTER JOB ….",
}
"""Statements that people look for, and that are not there."""


def _unknown_form(cursor: Cursor) -> SqlError:
    """Say which word could have come where the text leaves every known form."""
    forms = [words.split() for words, _ in _FORMS]
    known = 0
    while following := [form for form in forms if len(form) > known and form[known] == cursor.look(known).upper]:
        forms, known = following, known + 1
    for _ in range(known):
        cursor.take()
    todo = _NOT_HERE.get(" ".join([*forms[0][:known], cursor.token.upper]))
    return cursor.mismatch(*dict.fromkeys(form[known] for form in forms if len(form) > known), todo=todo)
