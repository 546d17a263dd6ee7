"""The error family. docs/errors.md has all of it in one table."""

from __future__ import annotations

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


class LadingError(Exception):
    """Root of everything Lading raises on purpose: what failed, what it left, what to do, and whether to try again."""

    retry: ClassVar[bool] = False
    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 500

    def __init__(self, what: str, *, left: str = "", todo: str = "", **facts: Any) -> None:
        self.what = what
        self.left = left
        self.todo = todo
        self.facts = facts
        super().__init__(" ".join(part for part in (f"{what}.", left, todo) if part))

    @property
    def code(self) -> str:
        """A stable name for machines: the class without `Error`."""
        return type(self).__name__.removesuffix("Error")


class ConfigError(LadingError):
    """A setting or argument is wrong."""

    exit_code = 2
    http_status = 400


class SqlError(LadingError):
    """A statement cannot be run as it is written."""

    exit_code = 2
    http_status = 400

    def __init__(
        self,
        what: str,
        *,
        place: Place | None = None,
        hint: str = "",
        left: str = "Nothing was changed.",
        todo: str = "",
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


class ParseError(SqlError):
    """The text is not a statement of Lading's SQL."""


class InvalidNameError(SqlError):
    """A name that no job, table or column can have."""


class PropertyError(SqlError):
    """A property is unknown, missing or out of range."""


class NotSupportedError(SqlError):
    """Understood, but it would not do what it says."""


class RefusedPlanError(SqlError):
    """Spark would run something that it may not run."""


class AlterError(SqlError):
    """ALTER asks for a change that is not allowed."""

    http_status = 409


class AuthError(LadingError):
    """Authentication failed."""

    http_status = 401


class DeniedError(LadingError):
    """The user lacks the privilege."""

    http_status = 403


class UserNotFoundError(LadingError):
    """No user has this name, or no token this id."""

    http_status = 404


class UserExistsError(LadingError):
    """The name belongs to another user."""

    http_status = 409


class SecretError(LadingError):
    """A secret that is needed cannot be read."""


class JobError(LadingError):
    """Something asked of a job cannot be done."""

    http_status = 409


class JobNotFoundError(JobError):
    """No job has this name."""

    http_status = 404


class JobExistsError(JobError):
    """The name belongs to another job."""


class JobStateError(JobError):
    """The state of the job does not allow it."""


class JobChangedError(JobError):
    """Another process changed the job meanwhile."""

    retry = True


class DatabaseError(LadingError):
    """Something is wrong with a database of the catalog."""

    http_status = 409


class DatabaseNotFoundError(DatabaseError):
    """No database has this name."""

    http_status = 404


class DatabaseExistsError(DatabaseError):
    """The name belongs to another database."""


class DatabaseInUseError(DatabaseError):
    """The database still has tables or jobs."""


class StoreError(LadingError):
    """The metadata store did not do what was asked."""

    retry = True
    http_status = 503


class StoreVersionError(StoreError):
    """The metadata store was written by a newer Lading, or by something else."""

    retry = False


class HomeLockedError(StoreError):
    """Another service runs in the same home folder."""

    retry = False
    http_status = 409


class StorageError(LadingError):
    """The object store or disk did not do what was asked."""

    retry = True
    http_status = 503


class RecordError(LadingError):
    """A stored record cannot be used."""


class RecordUnreadableError(RecordError):
    """Not JSON, or not a record of this kind."""


class RecordVersionError(RecordError):
    """Written by a newer Lading."""


class RecordInconsistentError(RecordError):
    """Readable, but its parts contradict each other."""


class TableError(LadingError):
    """Something is wrong with the target table."""

    http_status = 409


class TableNotFoundError(TableError):
    """Nothing is at the place where the table should be."""

    http_status = 404


class NotATableError(TableError):
    """Something is there, but it is not a table of the stated format."""


class TableVersionError(TableError):
    """The table needs abilities that this version of Lading does not have."""


class TableExistsError(TableError):
    """A table is already there."""


class TableNotWritableError(TableError):
    """The table can be read but not written."""


class SchemaMismatchError(TableError):
    """Rows or staged files do not fit the table as it is now. The job opens it again and stages the batch again."""

    retry = True


class CommitError(LadingError):
    """A commit did not go as planned."""

    http_status = 409


class ReportError(CommitError):
    """Reports are missing, doubled or do not fit the plan."""

    retry = True


class BudgetError(CommitError):
    """More bad rows than the job allows."""


class CommitRefusedError(CommitError):
    """Certain: the commit did not land. Its files are gone and the head stands."""

    retry = True


class UnknownOutcomeError(CommitError):
    """It is not known whether the commit landed. Its files are kept."""

    retry = True


class FencedError(CommitError):
    """Another incarnation has committed for this job."""


class RolledBackError(CommitError):
    """Somebody put the table back to an earlier state."""


class HeadLostError(CommitError):
    """The head of the job names a bill that is gone."""


class NotOpenError(CommitError):
    """The job has no head in this table yet."""


class SourceError(LadingError):
    """The source did not keep, or could not keep, its promises."""

    http_status = 502


class TrimmedError(SourceError):
    """Rows that were not read yet are gone from the source."""


class PartitionLostError(SourceError):
    """A partition vanished from the source before it was finished."""


class ListingError(SourceError):
    """The source's list of partitions is not complete."""

    retry = True


class SourceReplacedError(SourceError):
    """The source was deleted and made again under the same name."""


class StageError(SourceError):
    """The batch could not be staged. Nothing was committed."""

    retry = True


class BadBatchError(StageError):
    """What a batch reads cannot be loaded as it is."""

    retry = False
