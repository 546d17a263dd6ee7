"""The statements of one connection: Lading's own, and the chatter of MySQL clients around them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sqlglot import exp

from lading.errors import SqlError
from lading.model.names import INTERNAL, split_key
from lading.mysql.emulation.catalog import Catalog
from lading.mysql.emulation.constants import LONGEST, Surroundings, select_constants
from lading.mysql.emulation.schema_tables import NAME, SYSTEM, SchemaTables, is_about_schema
from lading.mysql.emulation.settings import change_settings
from lading.mysql.emulation.shows import Shows
from lading.mysql.emulation.tabular import ask, parse_mysql
from lading.mysql.emulation.variables import Variables
from lading.mysql.protocol.errors import Fault, syntax, too_many_prepared
from lading.mysql.protocol.parameters import literal_of
from lading.mysql.protocol.statement_text import check_size, fill, is_short, question_marks
from lading.service.limits.statement_size import MOST_LETTERS
from lading.service.recording import RawText, recorded
from lading.service.result import Result, done
from lading.service.session import Session
from lading.sql.statements.catalogs import SwitchCatalog
from lading.sql.statements.jobs import Query
from lading.sql.statements.tables import DescribeTable, UseDatabase
from lading.sql.statements.users import ShowGrants
from lading.sql.syntax.cursor import Cursor
from lading.sql.syntax.parse import parse_statement
from lading.sql.syntax.tokens import Kind

_MENTIONS_LITERALS = re.compile(r"\b(?:DUAL|UNION)\b", re.IGNORECASE)
_MENTIONS_SYSTEM = re.compile(rf"\b(?:{'|'.join(SYSTEM)})\b", re.IGNORECASE)

MOST_NAMED = 1000
"""Statements that one connection prepares by name."""
_BEGINS_QUERY = re.compile(r"(?:\s++|\(|--[^\n]*+\n|/\*(?:[^*]|\*(?!/))*+\*/)*+(?:SELECT|WITH)\b", re.IGNORECASE)


class Peers(Protocol):
    """The other connections, as far as one of them may know."""

    def processes(self, user: str) -> Iterable[Sequence[Any]]:
        """Rows of SHOW PROCESSLIST that a user may see."""
        ...

    def status(self) -> Iterable[tuple[str, str]]:
        """Rows of SHOW STATUS that are the same for all of them."""
        ...

    def kill(self, user: str, connection_id: int, *, whole: bool) -> None:
        """End a connection, or what it runs. Raises Fault when there is none or the user may not."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Connected:
    """What a connection knows of itself."""

    connection_id: int
    host: str
    variables: Variables
    peers: Peers
    sees: Callable[[str, str, str], bool]
    cipher: tuple[str, str] = ("", "")
    """What it is encrypted with, and the version of TLS."""

    def status(self) -> list[tuple[str, str]]:
        """Rows of SHOW STATUS."""
        cipher, version = self.cipher
        return sorted([*self.peers.status(), ("Ssl_cipher", cipher), ("Ssl_version", version)])


class Talk:
    """Used by one thread at a time. `quick` never waits; `execute` may take as long as a query takes."""

    def __init__(self, session: Session, connected: Connected) -> None:
        self.session = session
        self.user = session.user
        self.variables = connected.variables
        self.peers = connected.peers
        self._connected = connected
        self._in_schema = False
        self._named: dict[str, str] = {}
        user, peers = session.user, self.peers
        catalog = Catalog(session.lading, lambda database, table: connected.sees(user, database, table))
        self._catalog = catalog
        self._shows = Shows(catalog, lambda: peers.processes(user), connected.status)
        self._schema = SchemaTables(catalog, lambda: peers.processes(user), connected.status)

    @property
    def database(self) -> str:
        return NAME if self._in_schema else self.session.database

    def use(self, database: str) -> None:
        """Make a database the current one: one of the current catalog, or `catalog.db` as Doris has it."""
        catalog, dot, name = database.partition(".")
        is_whole = dot and (catalog == INTERNAL or self._catalog.has_catalog(catalog))
        self._use(UseDatabase(name=name, catalog=catalog) if is_whole else UseDatabase(name=database))

    def _use(self, statement: UseDatabase) -> None:
        if statement.name.lower() == NAME:
            if statement.catalog is not None:
                self.session.execute(SwitchCatalog(name=statement.catalog))
            self._in_schema = True
            return
        self.session.execute(statement)
        self._in_schema = False

    def reset(self) -> None:
        """Forget what was set and prepared."""
        self.variables.reset()
        self._named.clear()

    def quick(self, text: str) -> Result | None:
        """The answer to what needs nothing but the connection itself; None when it needs more."""
        if len(text) > LONGEST:
            return None
        around = self._around()
        return change_settings(text, around) or select_constants(text, around)

    def answer(self, text: str) -> Result:
        """The answer to one statement, whatever it needs. Raises LadingError or Fault."""
        found = None if is_short(text) else self.quick(text)  # Who asks has tried it for a short one.
        if found is not None:
            return found
        # What needs nothing but the connection (SET, SELECT @@version) is chatter of drivers; the rest is recorded.
        with recorded(self.session, RawText(text=text)):
            return self.execute(text)

    def execute(self, text: str) -> Result:
        """The answer to one statement. Raises LadingError or Fault."""
        check_size(text)
        self.session.check_login()
        check = self.session.form_check(text)
        if len(text) <= LONGEST and (found := self._own(text)) is not None:
            return found
        if _MENTIONS_LITERALS.search(text) and (tree := _query_or_none(text)) is not None:
            found = select_literals(tree, self._around())
            if found is not None:
                return found
        if _MENTIONS_SYSTEM.search(text) or self._in_schema:
            tree = _query_or_none(text)
            if tree is not None and is_about_schema(tree, self.database):
                return self._schema.answer(tree, self._around())
            # SHOW TABLES of what Lading's own SQL does not know as a database.
            if tree is None and (found := self._shows.answer(text, self._around())) is not None:
                return found
        try:
            statement = parse_statement(text, check)
        except SqlError:
            found = self._shows.answer(text, self._around())
            if found is None:
                raise
            return found
        if isinstance(statement, Query) and self._in_schema:
            raise Fault(
                1046, "3D000", f"No database is chosen but {NAME}. Write the database before the table, or USE it."
            )
        if isinstance(statement, DescribeTable):
            # Tools ask in this way whether a table is there. One that they may not know of is not.
            named = statement.name
            place = self.database if named.db is None else named.within(self.session.database)
            self._catalog.table(place, named.name)
        self.session.query_timeout_s = self.variables.query_timeout_s
        result = self.session.execute(statement)
        self._in_schema = self._in_schema and not isinstance(statement, SwitchCatalog)
        return result

    def columns_of(self, table: str) -> Sequence[str]:
        """Names of the columns of a table of the current database."""
        self.session.check_login()
        return [column.name for column in self._catalog.columns(self._catalog.table(self.database, table))]

    def _around(self) -> Surroundings:
        return Surroundings(
            variables=self.variables,
            connection_id=self._connected.connection_id,
            user=self.user,
            host=self._connected.host,
            database=self.database,
            catalog=split_key(self.session.database)[0],
            now=self.session.lading.clock.now(),
        )

    def _own(self, text: str) -> Result | None:
        """Statements about the connection that may have to look something up, or run another statement."""
        try:
            cursor = Cursor(text)
        except SqlError:
            return None
        if cursor.token.kind is Kind.END:
            return done("")
        if cursor.accept("USE"):
            named = cursor.database()
            self._use(UseDatabase(name=named.name, catalog=named.db))
            return done("")
        if cursor.accept("KILL"):
            return self._kill(cursor)
        if cursor.sees("EXPLAIN") and cursor.look(1).upper in ("SELECT", "WITH", "FORMAT", "ANALYZE"):
            msg = "EXPLAIN of a query is not supported. Nothing was changed. EXPLAIN JOB and EXPLAIN ALTER are."
            raise Fault(1235, "42000", msg)
        if cursor.accept("SHOW", "GRANTS", "FOR", "CURRENT_USER"):
            if cursor.accept_symbol("("):
                cursor.expect_symbol(")")
            return self.session.execute(ShowGrants()) if cursor.is_done else None
        if (
            cursor.sees("PREPARE")
            or cursor.sees("EXECUTE")
            or cursor.sees("DEALLOCATE")
            or cursor.sees("DROP", "PREPARE")
        ):
            return self._prepared(cursor)
        return None

    def _kill(self, cursor: Cursor) -> Result:
        whole = not cursor.accept("QUERY")
        cursor.accept("CONNECTION")
        number = cursor.number("the number of a connection")
        self.peers.kill(self.user, number, whole=whole)
        return done("")

    def _prepared(self, cursor: Cursor) -> Result:
        """PREPARE name FROM 'text', EXECUTE name [USING @a, …], DEALLOCATE PREPARE name."""
        if cursor.accept("PREPARE"):
            name = cursor.identifier("a name").lower()
            cursor.expect("FROM")
            self._name(name, self._text_of(cursor))
            return done("Statement prepared")
        if cursor.accept("EXECUTE"):
            name = cursor.identifier("a name").lower()
            text = self._named.get(name)
            if text is None:
                raise _no_statement(name, "EXECUTE")
            return self._run_named(text, cursor)
        cursor.choose("DEALLOCATE", "DROP")
        cursor.expect("PREPARE")
        name = cursor.identifier("a name").lower()
        if self._named.pop(name, None) is None:
            raise _no_statement(name, "DEALLOCATE PREPARE")
        return done("")

    def _name(self, name: str, text: str) -> None:
        kept = sum(map(len, self._named.values()))
        if (name not in self._named and len(self._named) >= MOST_NAMED) or kept + len(text) > MOST_LETTERS:
            raise too_many_prepared(MOST_NAMED)
        self._named[name] = text

    def _text_of(self, cursor: Cursor) -> str:
        if cursor.accept_symbol("@"):
            return str(self.variables.own.get(cursor.identifier("a variable").lower(), ""))
        return cursor.string("a string")

    def _run_named(self, text: str, cursor: Cursor) -> Result:
        values: list[Any] = []
        if cursor.accept("USING"):
            while True:
                cursor.expect_symbol("@")
                values.append(self.variables.own.get(cursor.identifier("a variable").lower()))
                if not cursor.accept_symbol(","):
                    break
        marks = question_marks(text)
        if len(marks) != len(values):
            raise Fault(1210, "HY000", f"Incorrect arguments to EXECUTE: {len(marks)} are wanted, {len(values)} given")
        filled = fill(text, marks, [literal_of(value) for value in values])
        if Cursor(filled).token.upper in ("PREPARE", "EXECUTE", "DEALLOCATE"):
            raise Fault(1295, "HY000", "This command is not supported in the prepared statement protocol yet")
        return self.quick(filled) or self.execute(filled)


def _no_statement(name: str, where: str) -> Fault:
    return Fault(1243, "HY000", f"Unknown prepared statement handler ({name}) given to {where}")


def _query_or_none(text: str) -> Any:
    if not _BEGINS_QUERY.match(text):
        return None
    try:
        return parse_mysql(text)
    except Fault:
        return None


def refuse_several() -> Fault:
    """For clients that did not say that they understand several answers."""
    return syntax("There is more than one statement. Send them one by one, or connect with CLIENT_MULTI_STATEMENTS.")


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
