"""Two names of one table: a server may be known as two catalogs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from lading.errors import ConfigError, LadingError, NotFoundError, TableNotFoundError
from lading.ids import JobId
from lading.model.names import is_external, split_table
from lading.service.catalog.tables import TableCatalog


def same_tables(catalog: TableCatalog, name: str) -> Callable[[str], bool]:
    """Tells whether another whole name means the same table. It raises ConfigError when that cannot be found out."""
    if not is_external(split_table(name)[0]):
        return lambda other: other == name

    identity = cache(partial(_identity, catalog))

    def is_same(other: str) -> bool:
        if other == name or not is_external(split_table(other)[0]):
            return other == name
        return identity(name) is not None and identity(name) == identity(other)

    return is_same


def loaders(catalog: TableCatalog, name: str, *, is_purged: bool) -> Callable[[JobId, str], bool]:
    """Tells whether a job, whose target has a whole name, loads into a table that is to be dropped.

    When the job's catalog does not answer, the table itself is asked: every job leaves its head in the table that it
    loads, and its bills beside it. One that has neither is another table. Files are deleted on better evidence only:
    a catalog may know an older state of the table, from before the job. Raises ConfigError when it cannot be found out.
    """
    is_same = same_tables(catalog, name)

    def loads(job_id: JobId, target: str) -> bool:
        try:
            return is_same(target)
        except ConfigError as error:
            if is_purged:
                todo = f"{error.todo} Without PURGE the name alone is dropped, and no file."
                raise ConfigError(error.what, left=error.left, todo=todo) from error
            if not _answers(catalog, name):
                raise
        lake = catalog.open_table(*split_table(name))
        return job_id in lake.job_ids() or bool(lake.bills.heads(job_id))

    return loads


def _answers(catalog: TableCatalog, name: str) -> bool:
    try:
        return _identity(catalog, name) is not None
    except ConfigError:
        return False


def _identity(catalog: TableCatalog, name: str) -> str | None:
    """Of a table of another catalog; None when there is none."""
    database, table = split_table(name)
    try:
        return catalog.incarnation(database, table)
    except (TableNotFoundError, NotFoundError):
        return None
    except LadingError as error:
        msg = f"Two names may mean one table, and which one {name} means cannot be told: {error.what}"
        todo = f"Try again when its catalog answers. If it never will, drop the jobs that load into {name} first."
        raise ConfigError(msg, left="Nothing was changed.", todo=todo) from error
