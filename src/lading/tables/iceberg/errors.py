"""What PyIceberg, its catalogs and its file systems raise, in Lading's words. The only such place for Iceberg."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError
from pyiceberg.exceptions import (
    ForbiddenError,
    NoSuchNamespaceError,
    NoSuchPropertyException,
    NoSuchTableError,
    NotInstalledError,
    OAuthError,
    RESTError,
    TableAlreadyExistsError,
    UnauthorizedError,
    ValidationError,
)
from requests.exceptions import RequestException
from sqlalchemy.exc import ArgumentError, DBAPIError

from lading.errors import (
    ConfigError,
    ConflictError,
    LadingError,
    StorageError,
    TableError,
    TableNotFoundError,
)

_NOTHING = "Nothing was changed."
_DENIED = frozenset(
    (
        "AccessDeniedException",
        "AccessDenied",
        "UnrecognizedClientException",
        "InvalidClientTokenId",
        "InvalidSignatureException",
    )
)
"""What AWS Glue says to a key that is wrong, or may not do it."""
_FORBIDDEN = ("AccessControlException", "Permission denied", "does not have privileges")
"""What a Hive metastore says."""
_NOT_LET_IN = re.compile(
    "permission denied|password authentication failed|no password supplied|not permitted to log in|no pg_hba.conf entry"
    '|role "[^"]*" does not exist'
)
"""What PostgreSQL says to somebody who may not come in, or may not do it."""
_UNKNOWN_TYPE = re.compile(r"Unsupported field type: '([^']*)'")


class CatalogAnswerError(Exception):
    """What a catalog said, or that it said nothing, when neither PyIceberg nor Python has a word for it."""


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Raise Lading's errors for work on `what` that sends no commit."""
    try:
        yield
    except LadingError:
        raise
    except Exception as error:
        raised = in_our_words(what, error)
        if raised is None:
            raise
        raise raised from error


def in_our_words(what: str, error: Exception) -> LadingError | None:
    """The error to raise instead; None for one that nobody expected."""
    match error:
        case NoSuchTableError() | NoSuchNamespaceError():
            msg = f"There is no Iceberg {what}: {error}"
            return TableNotFoundError(msg, left=_NOTHING, todo="Create the table, or check its name and catalog.")
        case TableAlreadyExistsError():
            msg = f"The Iceberg {what} is already there"
            return ConflictError(msg, code="TableExists", left=_NOTHING, todo="Open it, or choose another name.")
        case FileNotFoundError():
            msg = f"The catalog names the Iceberg {what}, but a file of it is gone: {error}"
            return TableError(msg, left=_NOTHING, todo="Restore the table's metadata folder, or drop the table.")
        case ValidationError() if "format-version" in str(error) and "tag" in str(error):
            msg = f"The Iceberg {what} has a format version that is not known: {_short(error)}"
            return TableError(msg, left=_NOTHING, todo="Use a newer Lading.")
        case ValidationError() if (kind := _UNKNOWN_TYPE.search(str(error))) is not None:
            msg = f"The Iceberg {what} asks for the type {kind[1]}, which Lading does not write"
            todo = "Load into a table without this type, or change the column with the engine that made it."
            return TableError(msg, left=_NOTHING, todo=todo)
        case ValidationError() if "EOF while parsing" in str(error):
            # A store that cuts its answers looks like this, and so does a file that was cut.
            msg = f"The metadata of the Iceberg {what} cannot be read: {_short(error)}"
            todo = "It is read again. If this lasts, restore the table's metadata folder from a copy."
            return TableError(msg, left=_NOTHING, todo=todo, code="CutMetadata")
        case ValidationError() | UnicodeDecodeError():
            msg = f"The metadata of the Iceberg {what} cannot be read: {_short(error)}"
            return TableError(msg, left=_NOTHING, todo="Restore the table's metadata folder from a copy.")
        case NoSuchPropertyException() | NotInstalledError() | ArgumentError() | ModuleNotFoundError():
            return wrong_setting(what, error)
    return _unreachable(what, error)


def _unreachable(what: str, error: Exception) -> LadingError | None:
    match error:
        case OAuthError():
            msg = f"No token for the Iceberg {what} could be had with its credential: {_short(error)}"
            names = "iceberg.rest.oauth2.credential, .scope and .server-uri"
            todo = f"Correct {names} of the catalog with ALTER CATALOG … SET PROPERTIES, then RESUME its jobs."
            return TableError(msg, left=_NOTHING, todo=todo)
        case PermissionError() | ForbiddenError() | UnauthorizedError():
            msg = f"The Iceberg {what} may not be read or written: {_short(error)}"
            return TableError(msg, left=_NOTHING, todo="Check the credentials and the permissions.")
        case ClientError() if error.response.get("Error", {}).get("Code") in _DENIED:
            msg = f"The Iceberg {what} may not be read or written: {_short(error)}"
            return TableError(msg, left=_NOTHING, todo="Check the credentials and the permissions.")
        case CatalogAnswerError() if any(word in str(error) for word in _FORBIDDEN):
            msg = f"The Iceberg {what} may not be read or written: {_short(error)}"
            return TableError(msg, left=_NOTHING, todo="Check the credentials and the permissions.")
        case DBAPIError() if _NOT_LET_IN.search(str(error)) is not None:
            msg = f"The Iceberg {what} may not be read or written: {_short(error)}"
            return TableError(msg, left=_NOTHING, todo="Check the credentials and the permissions.")
        case (
            CatalogAnswerError()
            | DBAPIError()
            | sqlite3.Error()
            | RequestException()
            | RESTError()
            | BotoCoreError()
            | ClientError()
        ):
            asked = f"The Iceberg {what}" if what.startswith("catalog ") else f"The catalog of the Iceberg {what}"
            msg = f"{asked} did not answer as it should: {_short(error)}"
            return StorageError(msg, left=_NOTHING, todo="Check that the catalog runs and can be reached.")
        case OSError():
            msg = f"Files of the Iceberg {what} could not be read or written: {_short(error)}"
            return StorageError(msg, left=_NOTHING, todo="Check the storage, its endpoint and the credentials.")
    return None


def wrong_setting(what: str, error: Exception) -> ConfigError:
    """The error for a catalog that cannot be opened as it is described."""
    msg = f"The Iceberg {what} cannot be opened with these settings: {_short(error)}"
    return ConfigError(msg, left=_NOTHING, todo="Correct the catalog's properties.")


def is_before_commit(error: BaseException) -> bool:
    """A database refused a *statement*: certain, the transaction never came to its COMMIT and was rolled back.

    An error of the COMMIT itself has no statement, and says nothing about what happened.
    """
    return isinstance(error, DBAPIError) and error.statement is not None


def is_locked(error: BaseException) -> bool:
    """SQLite refused a statement because of another writer's lock."""
    return is_before_commit(error) and "database is locked" in str(error)


def said_by(error: BaseException) -> str:
    """The words of a database, without those of SQLAlchemy around them: its statement, values and advice."""
    return str(error.orig) if isinstance(error, DBAPIError) and error.orig is not None else str(error)


def _short(error: BaseException) -> str:
    text = " ".join(said_by(error).split())
    return text if len(text) <= 300 else f"{text[:300]}…"
