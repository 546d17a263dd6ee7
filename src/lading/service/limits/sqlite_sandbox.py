"""Small tables in memory, asked with SQL that somebody else wrote: every query ends, and takes only so much memory.

SQLite ends a query between two of its steps. Its functions are steps: those that take the product of two lengths are
replaced by some that do not, and the length of what they are given is bounded.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from lading.errors import ConfigError
from lading.service.limits.cancellation import current_stop, stopped
from lading.service.result import Result

_STEPS = 10_000
_ROWS_AT_ONCE = 500
_CELL_BYTES = 64
"""What a value takes beside its letters."""
_PATTERN_BYTES = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What one query may take. Nothing that is asked here is that large."""

    seconds: float = 10.0
    rows: int = 100_000
    size: int = 64 * 1024 * 1024
    """Bytes of all rows."""
    value: int = 1024 * 1024
    """Bytes of one value that a query makes, or of twice the longest row that it was given."""


BOUNDS = Bounds()


class SmallTables:
    """Tables of one query. Used by one thread, and closed by it."""

    def __init__(self, bounds: Bounds | None = None) -> None:
        self._bounds = bounds or BOUNDS
        self._connection = sqlite3.connect(":memory:")
        self._longest = self._bounds.value
        self._why: ConfigError | None = None
        self._connection.set_progress_handler(lambda: self._why is not None, _STEPS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._connection.close()

    def attach(self, schema: str) -> None:
        """Let tables be called `schema.name`."""
        self._connection.execute(f"ATTACH ':memory:' AS {quoted(schema)}")

    def fill(self, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, kind: str = "") -> None:
        """Make a table; its name is as SQLite is to see it. Text is compared without regard to capitals."""
        listed = ", ".join(f"{quoted(column)} {kind} COLLATE NOCASE" for column in columns)
        self._connection.execute(f"CREATE TABLE {name} ({listed})")
        marks = ", ".join("?" for _ in columns)
        kept = [tuple(row) for row in rows]
        self._longest = max(self._longest, 2 * max(map(_size, kept), default=0))
        self._connection.executemany(f"INSERT INTO {name} VALUES ({marks})", kept)  # noqa: S608 - names are our own

    def ask(self, text: str) -> Result:
        """The answer to a query. Raises ConfigError when it takes too much, sqlite3.Error when it is wrong."""
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, self._longest)
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, _PATTERN_BYTES)
        for name, count, function in _functions(self._longest):
            self._connection.create_function(name, count, function, deterministic=True)
        timer = threading.Timer(self._bounds.seconds, lambda: self._end(self._too_long()))
        timer.daemon = True
        timer.start()
        try:
            with current_stop().ending(lambda: self._end(stopped())):
                return self._answer(text)
        except sqlite3.DataError as error:
            if "too big" in str(error):
                msg = f"one of its values is longer than {self._longest} bytes"
                raise _refused(msg, "shorter values") from error
            raise
        except sqlite3.OperationalError:
            if self._why is not None:
                raise self._why from None
            raise
        finally:
            timer.cancel()

    def _answer(self, text: str) -> Result:
        cursor = self._connection.execute(text)
        found: list[tuple[Any, ...]] = []
        size = 0
        while rows := cursor.fetchmany(_ROWS_AT_ONCE):
            found += rows
            size += sum(map(_size, rows))
            if len(found) > self._bounds.rows:
                msg = f"it has more than {self._bounds.rows} rows"
                raise _refused(msg, "LIMIT or a narrower WHERE")
            if size > self._bounds.size:
                msg = f"its rows take more than {self._bounds.size} bytes"
                raise _refused(msg, "fewer columns or LIMIT")
        return Result(columns=tuple(column[0] for column in cursor.description or ()), rows=tuple(found))

    def _end(self, why: ConfigError) -> None:
        """Called by other threads. The flag is for a query that has not begun yet, which cannot be interrupted."""
        self._why = self._why or why
        try:
            self._connection.interrupt()
        except sqlite3.ProgrammingError:
            return  # It is closed already.

    def _too_long(self) -> ConfigError:
        return _refused(f"it took more than {self._bounds.seconds:g} seconds", "a narrower question")


def quoted(name: str) -> str:
    """A name for SQLite."""
    return '"' + name.replace('"', '""') + '"'


def _size(row: Sequence[Any]) -> int:
    return sum(_CELL_BYTES + (len(value) if isinstance(value, str | bytes) else 0) for value in row)


def _refused(why: str, instead: str) -> ConfigError:
    return ConfigError(
        f"The query takes too much: {why}",
        left="Nothing was changed; the query was ended.",
        todo=f"Ask with {instead}.",
    )


def _functions(longest: int) -> Iterable[tuple[str, int, Callable[..., Any]]]:
    """SQLite's own ones take the product of the lengths of what they are given, and cannot be ended meanwhile."""

    def place(text: Any, part: Any) -> int | None:
        return None if text is None or part is None else _text(text).find(_text(part)) + 1

    def replaced(text: Any, old: Any, new: Any) -> str | None:
        if text is None or old is None or new is None:
            return None
        inside, out, put = _text(text), _text(old), _text(new)
        if not out:
            return inside
        if len(inside) + inside.count(out) * (len(put) - len(out)) > longest:
            raise OverflowError  # SQLite says of it that it is too big.
        return inside.replace(out, put)

    def trimmed(strip: Callable[[str, str], str]) -> Callable[[Any, Any], str | None]:
        # Letters that are there twice are not looked for twice.
        return lambda text, letters: (
            None
            if text is None or letters is None
            else strip(_text(text), "".join(dict.fromkeys(_text(letters)))[:_PATTERN_BYTES])
        )

    yield "instr", 2, place
    yield "replace", 3, replaced
    yield "trim", 2, trimmed(str.strip)
    yield "ltrim", 2, trimmed(str.lstrip)
    yield "rtrim", 2, trimmed(str.rstrip)


def _text(value: Any) -> str:
    return (
        value if isinstance(value, str) else value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    )
