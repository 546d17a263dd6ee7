"""One person's connection to a service: who asks, and which database is current."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lading.service.result import Result
from lading.sql.parse import parse_statements
from lading.sql.statements import Query, Statement

if TYPE_CHECKING:
    from lading.service.facade import Lading


class Session:
    """Used by one thread at a time; a service has many."""

    def __init__(self, lading: Lading, *, user: str, database: str = "default") -> None:
        self.lading = lading
        self.user = user
        self.database = database

    def sql(self, text: str) -> list[Result]:
        """Run statements, one after the other; the first that fails ends it."""
        return [self.execute(statement) for statement in parse_statements(text)]

    def execute(self, statement: Statement) -> Result:
        """Run one statement."""
        from lading.service.statements import execute

        try:
            return execute(self, statement)
        finally:
            # Also after a failure: it may have come after the job was changed. Reading statements change nothing.
            if not isinstance(statement, Query):
                self.lading.changed()
