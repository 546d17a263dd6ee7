"""Why a query has no answer although it was right."""

from __future__ import annotations

from lading.errors import ConfigError, LadingError


class QueryLimitError(ConfigError):
    """The query, or its answer, is larger than the service allows."""


class QueryTimeoutError(QueryLimitError):
    """The query took longer than it may."""


class QueryMemoryError(QueryLimitError):
    """The query needs more memory than the query process has."""


class QueryProcessError(LadingError):
    """The process that queries run in ended, for another reason than this query."""

    retry = True
    http_status = 503


class BusyError(LadingError):
    """Too many queries wait for their turn."""

    retry = True
    http_status = 503
