"""`lading sql` at a terminal: statements over several lines, their history, and help."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lading.cli.statement_ends import read_ends
from lading.errors import LadingError

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from rich.console import Console

GREETING = "Statements end with ; or \\G. help lists them; Ctrl-C clears, Ctrl-D leaves."
TOPICS: dict[str, tuple[str, ...]] = {
    "databases and tables": (
        "CREATE DATABASE", "DROP DATABASE", "SHOW DATABASES", "USE", "CREATE TABLE", "DROP TABLE", "SHOW TABLES",
        "CREATE CATALOG", "ALTER CATALOG", "DROP CATALOG", "SHOW CATALOGS", "SHOW CREATE CATALOG", "SWITCH",
        "REFRESH CATALOG",
        "ALTER TABLE", "DESCRIBE", "DESC", "SELECT", "WITH", "OPTIMIZE", "ADMIN COMPACT TABLE", "SHOW COMPACTION",
        "ADMIN CLEAN ORPHANS",
    ),
    "jobs": (
        "CREATE JOB", "ALTER JOB", "PAUSE JOB", "RESUME JOB", "DROP JOB", "SHOW JOBS", "SHOW CREATE JOB", "EXPLAIN JOB",
        "EXPLAIN CREATE JOB", "EXPLAIN ALTER JOB", "UNDO ALTER JOB", "SKIP FILE", "LOAD FILE",
        "EXPLAIN SKIP FILE", "EXPLAIN LOAD FILE", "SHOW LOAD", "SHOW ROLLBACK", "ACCEPT ROLLBACK",
        "REPLAY ERRORS", "EXPLAIN REPLAY ERRORS", "SHOW SERVICES",
    ),
    "routine loads": (
        "CREATE ROUTINE LOAD", "ALTER ROUTINE LOAD", "PAUSE ROUTINE LOAD", "PAUSE ALL ROUTINE LOAD",
        "RESUME ROUTINE LOAD", "RESUME ALL ROUTINE LOAD", "STOP ROUTINE LOAD", "SHOW ROUTINE LOAD",
        "SHOW ALL ROUTINE LOAD", "SHOW CREATE ROUTINE LOAD", "SHOW ALL CREATE ROUTINE LOAD", "EXPLAIN ROUTINE LOAD",
        "EXPLAIN CREATE ROUTINE LOAD", "EXPLAIN ALTER ROUTINE LOAD", "UNDO ALTER ROUTINE LOAD",
    ),
    "users": (
        "CREATE USER", "ALTER USER", "DROP USER", "SHOW USERS", "CREATE ROLE", "DROP ROLE", "SHOW ROLES",
        "GRANT", "REVOKE", "SHOW GRANTS", "CREATE TOKEN", "DROP TOKEN", "SHOW TOKENS", "SHOW AUDIT",
    ),
}  # fmt: skip
"""First words of all statements. A test compares them with those of the parser."""


def help_text() -> str:
    """The statements by topic."""
    lines = ["Statements, by topic; docs/sql.md has the whole of each."]
    for topic, forms in TOPICS.items():
        lines += ["", f"{topic}:", *(f"  {form}" for form in forms)]
    return "\n".join([*lines, "", "exit or Ctrl-D leaves the shell."])


def talk(run: Callable[[str], None], history: Path, console: Console) -> None:
    """Read statements until somebody leaves. `run` runs and shows them."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.history import FileHistory

    forms = [form for topic in TOPICS.values() for form in topic]
    prompt: PromptSession[str] = PromptSession(
        history=FileHistory(str(history)),
        multiline=True,
        key_bindings=_keys(),
        completer=WordCompleter(["help", "exit", *forms], ignore_case=True, sentence=True),
        complete_while_typing=False,
        prompt_continuation="   ...> ",
        enable_history_search=True,
    )
    console.print(GREETING)
    while True:
        try:
            text = prompt.prompt("lading> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        match text.strip().lower().rstrip(";").strip():
            case "":
                continue
            case "exit" | "quit" | "\\q":
                return
            case "help" | "?" | "\\h" | "\\?":
                console.print(help_text(), markup=False)
                continue
        try:
            run(text)
        except LadingError as error:
            from lading.service.security.redaction import redact

            console.print(redact(str(error)), style="red", markup=False)
        except KeyboardInterrupt:
            console.print("stopped waiting; what was begun may still be done", style="yellow")


def is_entered(text: str) -> bool:
    """Whether Enter sends a text: its last statement has an end, or it is a word for the shell."""
    word = text.strip().lower()
    return word in ("", "exit", "quit", "help", "?", "\\q", "\\h", "\\?") or read_ends(text).is_complete


def _keys() -> KeyBindings:
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_entered(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys
