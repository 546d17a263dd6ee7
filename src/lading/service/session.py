"""One person's connection to a service: who asks, and which database is current."""

from __future__ import annotations

from collections.abc import Callable

from lading.errors import AuthError
from lading.jobs.record import JobRecord
from lading.model.names import split_key
from lading.service.compile.seen_from import seen_from
from lading.service.installation import Installation
from lading.service.recording import RawText, Recording, recorded
from lading.service.result import Result
from lading.service.security.authorization import check_allowed, check_form, check_length, no_such_job, sees
from lading.service.security.privileges import ROOT, Identity, Rights
from lading.sql.statements.catalogs import SwitchCatalog
from lading.sql.statements.jobs import Query, Statement
from lading.sql.statements.tables import UseDatabase
from lading.sql.statements.users import Privilege
from lading.sql.syntax.parse import parse_statements

Execute = Callable[["Session", Statement], Result]
"""Runs a statement that its session may run."""


class Session:
    """Used by one thread at a time; a service has many."""

    def __init__(
        self,
        lading: Installation,
        execute: Execute,
        *,
        user: str,
        database: str = "default",
        identity: Identity | None = None,
    ) -> None:
        self.lading = lading
        self._run = execute
        self.user = user
        self.database = database
        self.identity = identity or ROOT
        self.origin = self.identity.origin
        self.recording: Recording | None = None
        """What is to be recorded of what it does now."""
        self._is_guarded = identity is not None and not identity.is_root
        self._is_bound = identity is not None and identity.created_at is not None
        self.rights: Rights | None = None
        """What its user may do, read again for each statement; None: everything."""
        self.query_timeout_s: float | None = None
        """How long its queries may take, when it asked for less than the service allows."""
        self.folder = ""
        """Where relative paths of its statements begin; empty: in the folder of this process."""

    @property
    def is_admin(self) -> bool:
        """Whether its user may do everything, now."""
        return not self._is_guarded or self.lading.access.may(self.identity, Privilege.ADMIN)

    def job(self, name: str, *, include_final: bool = False) -> JobRecord:
        """A streaming job by its name. One that is not there for this session is not there."""
        record = self.lading.job(name, include_final=include_final)
        if not self.sees(record):
            raise no_such_job(name)
        return record

    def sees(self, record: JobRecord) -> bool:
        """Whether a job is there for this session."""
        return sees(self.rights, record)

    def sees_database(self, database: str) -> bool:
        """Whether a database is there for this session. The one that sessions begin in always is."""
        return self.rights is None or database == "default" or self.rights.see_database(database)

    def sees_catalog(self, catalog: str) -> bool:
        """Whether a catalog is there for this session."""
        return self.rights is None or self.rights.see_catalog(catalog)

    def sees_table(self, database: str, table: str) -> bool:
        """Whether a table is there for this session."""
        return self.rights is None or self.rights.see_table(database, table)

    def use(self, database: str) -> None:
        """Make a database the current one, as USE does, or a catalog, as SWITCH does. A face calls it with what its
        client chose, written as `Session.database` is: `db`, `catalog.db`, or `catalog.` for no database of one.
        """
        if database != self.database:
            catalog, name = split_key(database)
            statement = UseDatabase(name=name, catalog=catalog) if name else SwitchCatalog(name=catalog)
            if name and catalog == split_key(self.database)[0]:
                statement = UseDatabase(name=name)
            with recorded(self, statement, only_failures=True):  # The client sent no statement.
                self.execute(statement)

    def sql(self, text: str) -> list[Result]:
        """Run statements, one after the other; the first that fails ends it."""
        return [self.execute(statement) for statement in self.parse(text)]

    def parse(self, text: str) -> tuple[Statement, ...]:
        """All statements of a text. Also a text that cannot be parsed was sent by somebody: it is recorded."""
        with recorded(self, RawText(text=text), only_failures=True):
            return parse_statements(text, self.form_check(text))

    def form_check(self, text: str) -> Callable[[str], None]:
        """Refuse a long text of somebody who may do nothing. What is returned refuses, by the first words of a
        statement, those that the user may run on nothing: before the rest is read, which can take long.
        """
        if not self._is_guarded:
            return lambda form: None
        rights = self.lading.access.rights(self.identity)
        check_length(rights, text)
        return lambda form: check_form(rights, form, len(text))

    def execute(self, statement: Statement) -> Result:
        """Run one statement, and record it."""
        with recorded(self, statement):
            return self._execute(statement)

    def _execute(self, statement: Statement) -> Result:
        self._check_current()
        statement = seen_from(statement, self.folder)
        self.rights = self.lading.access.rights(self.identity) if self._is_guarded else None
        if self.rights is not None:
            check_allowed(self.database, self.rights, statement)
        try:
            return self._run(self, statement)
        finally:
            # Also after a failure: it may have come after the job was changed. Reading statements change nothing.
            if not isinstance(statement, Query):
                self.lading.changed()

    def check_login(self) -> None:
        """Raise AuthError when the login has ended. A face asks before it answers anything by itself."""
        if self._is_bound or self.identity.is_from_directory:
            self._check_current()

    def _check_current(self) -> None:
        if (self._is_guarded or self._is_bound) and not self.lading.access.is_current(self.identity):
            msg = f"The login of user '{self.user}' has ended: the user was dropped or has a new password"
            raise AuthError(msg, left="Nothing was changed.", todo="Log in again.", user=self.user)
