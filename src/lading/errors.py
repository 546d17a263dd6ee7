"""The error family.

    LadingError
    ├── ConfigError            a setting or argument is wrong
    ├── StorageError           the object store or disk did not do what was asked
    ├── RecordError
    │   ├── RecordUnreadableError   not JSON, or not a record of this kind
    │   ├── RecordVersionError      written by a newer Lading
    │   └── RecordLiesError         readable, but its parts contradict each other
    ├── TableError
    │   ├── TableNotFoundError      nothing is there
    │   ├── NotATableError          something is there, but not a table
    │   ├── TableVersionError       needs abilities this Lading does not have
    │   ├── TableExistsError
    │   ├── TableNotWritableError
    │   └── SchemaMismatchError     staged files do not fit the table
    ├── CommitError
    │   ├── ReportError             reports missing, doubled or out of place
    │   ├── BudgetError             more bad rows than the job allows
    │   ├── CommitRefusedError      certain: the commit did not land
    │   ├── UnknownOutcomeError     not known whether the commit landed
    │   ├── FencedError             another incarnation owns the job
    │   ├── RolledBackError         the table was put back to an earlier state
    │   ├── HeadLostError           the head names a bill that is gone
    │   └── NotOpenError            the job has no head yet
    └── SourceError
        ├── TrimmedError            unread rows are gone from the source
        ├── PartitionLostError      a partition vanished before it was finished
        ├── ListingError            the listing is not complete
        ├── SourceReplacedError     same name, another source
        └── StageError              the batch could not be staged

Every message says what failed, what state it left, and what to do next; `retry` says whether trying again
without a person can help.
"""

from __future__ import annotations

from typing import Any, ClassVar


class LadingError(Exception):
    """Root of everything Lading raises on purpose."""

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


class RecordLiesError(RecordError):
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
    """Staged files do not fit the schema of the table."""


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
