"""What can be wrong with a schema registry, said so that a person knows what to do.

StageError when it did not answer: the batch is tried again. SourceError when it will not give what is needed; with the
code NoSuchSchema when it has no such schema, which makes the record a bad row.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from lading.errors import SourceError, StageError

_NOTHING = "Nothing of this batch was committed; the position is unchanged."
_NO_SUCH_SCHEMA = (40401, 40402, 40403)
"""What a registry says of a subject, a version or a schema that it does not have."""
_NOT_NOW = (408, 429)


def registry_refused(url: str, why: object, todo: str) -> SourceError:
    return SourceError(f"The schema registry {url} cannot be used: {why}", left=_NOTHING, todo=todo)


@contextmanager
def asking(url: str) -> Iterator[None]:
    """Errors of the registry's client become errors about the registry. Nothing but questions may stand inside."""
    from confluent_kafka.schema_registry.error import OAuthTokenError, SchemaRegistryError

    try:
        yield
    except SchemaRegistryError as error:
        if error.http_status_code == 404 and error.error_code in _NO_SUCH_SCHEMA:
            msg, todo = error.error_message, "Register the schema; its records are bad rows until then."
            raise SourceError(msg, code="NoSuchSchema", left=_NOTHING, todo=todo) from error
        if error.http_status_code >= 500 or error.http_status_code in _NOT_NOW:
            raise _unavailable(url, error) from error
        raise registry_refused(url, error, "Check its url and the credentials, then RESUME.") from error
    except _http_errors() as error:
        raise _unavailable(url, error) from error
    except (OAuthTokenError, OSError) as error:
        raise _unavailable(url, error) from error
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        raise _unavailable(url, f"what it said is no answer of a registry ({error})") from error


def _http_errors() -> tuple[type[Exception], ...]:
    """Those of the HTTP library that the registry's client came with."""
    libraries = [sys.modules[name] for name in ("httpx2", "httpx") if name in sys.modules]
    return tuple(kind for library in libraries for kind in (library.HTTPError, library.InvalidURL))


def _unavailable(url: str, why: object) -> StageError:
    msg = f"The schema registry {url} did not answer: {why}"
    return StageError(msg, left=_NOTHING, todo="The batch is tried again. Check that the registry runs.")
