"""The error family: a class for each thing that somebody catches, a code for each that a client tells apart.

FACES says what the faces make of them. docs/errors.md shows all of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol


class Place(Protocol):
    """A part of a text, as far as a message needs it. No secret is shown by any of it."""

    @property
    def line(self) -> int: ...

    @property
    def column(self) -> int: ...

    @property
    def slice(self) -> str: ...

    @property
    def excerpt(self) -> tuple[str, str, str]: ...


@dataclass(frozen=True, slots=True)
class Face:
    """What an error is at the doors of the service."""

    http_status: int
    errno: int = 1105
    """Of MySQL, as is `sqlstate`."""
    sqlstate: str = "HY000"


FACES: dict[str, Face] = {
    # Classes, by their names without `Error`.
    "Lading": Face(500),
    "Config": Face(400),
    "Sql": Face(400, 1064, "42000"),
    "NotSupported": Face(400, 1235, "42000"),
    "Auth": Face(401, 1045, "28000"),
    "Denied": Face(403, 1227, "42000"),
    "NotFound": Face(404),
    "JobNotFound": Face(404),
    "Conflict": Face(409),
    "JobState": Face(409),
    "JobChanged": Face(409),
    "Secret": Face(500),
    "Store": Face(503),
    "Storage": Face(503),
    "Record": Face(500),
    "Table": Face(409),
    "TableNotFound": Face(404, 1146, "42S02"),
    "SchemaMismatch": Face(409),
    "Budget": Face(409),
    "CommitRefused": Face(409),
    "UnknownOutcome": Face(409),
    "Fenced": Face(409),
    "RolledBack": Face(409),
    "HeadLost": Face(409),
    "Source": Face(502),
    "Trimmed": Face(502),
    "Listing": Face(502),
    "Stage": Face(502),
    "Request": Face(400),
    "Unavailable": Face(503),
    # Finer codes of some of them.
    "Alter": Face(409, 1064, "42000"),
    "RefusedPlan": Face(400, 1235, "42000"),
    "QueryLimit": Face(400),
    "QueryTimeout": Face(400, 3024),
    "QueryMemory": Face(400, 1041),
    "NoNode": Face(400),
    "NoHome": Face(400),
    "UserNotFound": Face(404, 1396),
    "DatabaseNotFound": Face(404, 1049, "42000"),
    "UserExists": Face(409, 1396),
    "JobExists": Face(409),
    "DatabaseExists": Face(409, 1007),
    "CatalogExists": Face(409),
    "CatalogNotFound": Face(404, 5085, "42000"),
    "TableExists": Face(409, 1050, "42S01"),
    "ColumnExists": Face(409, 1060, "42S21"),
    "DatabaseInUse": Face(409),
    "HomeLocked": Face(409),
    "LeaseLost": Face(409),
    "NoSuchSchema": Face(502),
    "FileUnreadable": Face(502),
    "UnfitExecutor": Face(502),
    "PlaceMissing": Face(502),
    "UnsortedListing": Face(502),
    "WorkerLost": Face(502),
    "UnseenColumns": Face(502),
    "SchemaChanged": Face(409),
    "CutMetadata": Face(503),
    "NotJson": Face(400),
    "NotHttp": Face(400),
    "CrossSite": Face(403),
    "NoSuchPath": Face(404),
    "Method": Face(405),
    "SlowBody": Face(408),
    "SlowHead": Face(408),
    "BodyTooLarge": Face(413),
    "StatementTooLarge": Face(413),
    "MediaType": Face(415),
    "WrongHost": Face(421),
    "InvalidRequest": Face(422),
    "HeadTooLarge": Face(431),
    "Internal": Face(500),
    "Crowded": Face(503),
    "NotReady": Face(503),
}
"""HTTP status and MySQL number of every code."""
DENIED_ON = {"table": Face(403, 1142, "42000"), "database": Face(403, 1044, "42000")}
"""MySQL has other numbers for a privilege on less than everything."""


class LadingError(Exception):
    """Root of everything Lading raises on purpose: what failed, what it left, what to do, and whether to try again."""

    retry: ClassVar[bool] = False
    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, left: str = "", todo: str = "", code: str = "", **facts: Any) -> None:
        self.what = what
        self.left = left
        self.todo = todo
        self.code = code or type(self).__name__.removesuffix("Error")
        """A stable name for machines: that of the class without `Error`, or a finer one."""
        self.facts = facts
        super().__init__(" ".join(part for part in (f"{what}.", left, todo) if part))

    @property
    def face(self) -> Face:
        """What HTTP and MySQL answer."""
        return FACES.get(self.code) or FACES[type(self).__name__.removesuffix("Error")]


class ConfigError(LadingError):
    """A setting, an argument or what a query asks for is wrong."""

    exit_code = 2


class SqlError(LadingError):
    """A statement cannot be run as it is written."""

    exit_code = 2

    def __init__(
        self,
        what: str,
        *,
        place: Place | None = None,
        hint: str = "",
        left: str = "Nothing was changed.",
        todo: str = "Correct the statement.",
        **facts: Any,
    ) -> None:
        super().__init__(what, left=left, todo=todo, **facts)
        self.place = place
        """Where in the text, when that is known."""
        self.hint = hint
        """Two or three words to stand behind the carets."""

    @property
    def line(self) -> int:
        """Number of the line, from 1; 0 when the place is not known."""
        return self.place.line if self.place else 0

    @property
    def column(self) -> int:
        """Number of the letter in its line, from 1; 0 when the place is not known."""
        return self.place.column if self.place else 0

    @property
    def offending(self) -> str:
        """The part of the text that is wrong."""
        return self.place.slice if self.place else ""

    def pretty(self) -> str:
        """The line that is wrong, with carets under the part that is wrong."""
        if self.place is None:
            return ""
        before, wrong, after = self.place.excerpt
        carets = "^" * max(1, len(wrong))
        return f"    {before}{wrong}{after}\n    {' ' * len(before)}{carets} {self.hint}".rstrip()

    def __str__(self) -> str:
        told = super().__str__()
        return f"Line {self.line}, column {self.column}: {told}\n{self.pretty()}" if self.place else told


class NotSupportedError(SqlError):
    """Understood, but it would not do what it says, or must not be run."""

    def __init__(self, what: str, *, todo: str = "Write it in another way; see docs/sql.md.", **more: Any) -> None:
        super().__init__(what, todo=todo, **more)


class AuthError(LadingError):
    """Authentication failed."""


class DeniedError(LadingError):
    """The user lacks the privilege."""

    @property
    def face(self) -> Face:
        return DENIED_ON.get(self.facts.get("on", ""), super().face)


class NotFoundError(LadingError):
    """No user, role, token or database has this name."""


class JobNotFoundError(NotFoundError):
    """No job has this name."""


class ConflictError(LadingError):
    """What is there already is in the way: a name is taken, a database is not empty, a home is in use."""


class JobStateError(LadingError):
    """The state of the job does not allow it."""


class JobChangedError(LadingError):
    """Another process changed the job meanwhile."""

    retry = True


class SecretError(LadingError):
    """A secret that is needed cannot be read."""


class StoreError(LadingError):
    """The metadata store did not do what was asked."""

    retry = True


class StorageError(LadingError):
    """The object store or disk did not do what was asked."""

    retry = True


class RecordError(LadingError):
    """A stored record cannot be used: it is broken, contradicts itself, or was written by a newer Lading."""


class TableError(LadingError):
    """The target is not a table of the stated format, or one that Lading cannot read or write."""


class TableNotFoundError(TableError):
    """Nothing is at the place where the table should be."""


class SchemaMismatchError(TableError):
    """Rows or staged files do not fit the table as it is now. The job opens it again and stages the batch again."""

    retry = True


class BudgetError(LadingError):
    """More bad rows than the job allows."""


class CommitRefusedError(LadingError):
    """Certain: the commit did not land. Its files are gone and the head is unchanged."""

    retry = True


class UnknownOutcomeError(LadingError):
    """It is not known whether the commit landed. Its files are kept."""

    retry = True


class FencedError(LadingError):
    """Another incarnation has committed for this job."""


class RolledBackError(LadingError):
    """The table was rolled back to an earlier state."""


class HeadLostError(LadingError):
    """The head of the job names a bill that is gone."""


class SourceError(LadingError):
    """The source does not have, or no longer has, what the job reads."""


class TrimmedError(SourceError):
    """Rows, or a partition, that were not read yet are gone from the source."""


class ListingError(SourceError):
    """The source could not be listed completely."""

    retry = True


class StageError(SourceError):
    """The batch could not be staged. Nothing was committed."""

    retry = True


UNSEEN_COLUMNS = "UnseenColumns"
"""The code of a StageError whose batch has fields that the table has no column for: they are among its facts."""
LINES_IN_FIELDS = "LinesInFields"
"""The code of a StageError for a file that was cut where only one task can read it: one of its fields has lines."""
LINES_FOUND = "was cut for several tasks, and a field of it has lines"
"""What its message says: of an error in a task, the driver knows no more than its class and its message."""
FILE_UNREADABLE = "FileUnreadable"
"""The code of a SourceError for a file that is damaged, cut off, of another format, or without a column."""
FILE_FOUND = " cannot be read: "
"""What its message says behind the name of the file."""
WORKER_LOST = "WorkerLost"
"""The code of a StageError whose batch ended the process that read its rows."""
CUT_METADATA = "CutMetadata"
"""The code of a TableError for metadata without its end: a file is damaged, or an answer was cut and may come whole."""


class RequestError(LadingError):
    """The request itself is wrong, or a running service refused it."""


class UnavailableError(LadingError):
    """Something that is needed does not answer, or has too much to do."""

    retry = True
