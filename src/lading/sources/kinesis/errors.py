"""What can be wrong with a stream, said so that a person knows what to do. botocore's errors are translated here."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError

from lading.errors import ConfigError, LadingError, ListingError, SourceError, StageError, TrimmedError

NOT_FOUND = "ResourceNotFoundException"
INVALID = "InvalidArgumentException"
EXPIRED_ITERATOR = "ExpiredIteratorException"
EXPIRED_TOKEN = "ExpiredNextTokenException"  # noqa: S105  # a name of an error, not a secret
THROTTLED = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "LimitExceededException",
        "KMSThrottlingException",
        "Throttling",
        "ThrottlingException",
        "RequestLimitExceeded",
        "TooManyRequestsException",
    }
)
_PASSING = frozenset(
    {
        EXPIRED_ITERATOR,
        "InternalFailure",
        "InternalFailureException",
        "ServiceUnavailable",
        "RequestTimeout",
        "SlowDown",
    }
)
_REFUSED = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "UnrecognizedClientException",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "SignatureDoesNotMatch",
        "IncompleteSignature",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "NotAuthorized",
        "OptInRequired",
        "KMSAccessDeniedException",
    }
)
_OLD_CREDENTIALS = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired"})
_NOTHING = "Nothing was committed; the position is unchanged."
_SERVER_ERROR = 500

Foreign = (ClientError, BotoCoreError)
"""Everything that botocore raises on purpose."""


def code_of(error: Exception) -> str:
    """The service's name for an error; empty for an error before or after the service."""
    return str(error.response["Error"].get("Code", "")) if isinstance(error, ClientError) else ""


def is_throttled(error: Exception) -> bool:
    """The service has no capacity for this call now."""
    return code_of(error) in THROTTLED


def is_passing(error: Exception) -> bool:
    """Trying again after a while can help."""
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return code_of(error) in _PASSING or status >= _SERVER_ERROR
    return not isinstance(error, NoCredentialsError | PartialCredentialsError)


def translated(error: Exception, stream: str, doing: str) -> LadingError:
    """An error of Lading for an error of botocore. Secrets stand in none of them."""
    code, why = code_of(error), _why(error)
    facts: dict[str, Any] = {"stream": stream, "aws_code": code}
    if code == NOT_FOUND:
        msg = f"Stream {stream} was not found while {doing}: {why}"
        return ConfigError(msg, left=_NOTHING, todo="Check kinesis_stream, aws.region and aws.endpoint.", **facts)
    if code in _REFUSED or isinstance(error, NoCredentialsError | PartialCredentialsError):
        msg = f"Stream {stream} refused the credentials while {doing}: {why}"
        todo = (
            "Check the keys or the role; needed are kinesis:DescribeStreamSummary, ListShards, GetShardIterator and "
            "GetRecords."
        )
        return ConfigError(msg, left=_NOTHING, todo=todo, **facts)
    if code in _OLD_CREDENTIALS:
        msg = f"The credentials for stream {stream} have expired ({doing}): {why}"
        return ConfigError(msg, left=_NOTHING, todo="Give new ones with ALTER, or use aws.role_arn.", **facts)
    if is_throttled(error) or is_passing(error):
        msg = f"Stream {stream} did not answer while {doing}: {why}"
        return StageError(msg, left=_NOTHING, todo="It is tried again.", **facts)
    msg = f"Stream {stream} refused {doing}: {why}"
    return SourceError(msg, left=_NOTHING, todo="Check the properties of the job.", **facts)


def _why(error: Exception) -> str:
    if isinstance(error, ClientError):
        told = error.response["Error"]
        return f"{told.get('Code', 'error')}: {told.get('Message', '')}".rstrip(": ")
    return f"{type(error).__name__}: {error}"


def listing_incomplete(stream: str, why: str) -> ListingError:
    """The shards that were listed are not all there are."""
    msg = f"The shards of stream {stream} could not all be listed: {why}"
    return ListingError(
        msg, left="Nothing was read; the position is unchanged.", todo="It is tried again.", stream=stream
    )


def start_refused(msg: str, todo: str, **facts: Any) -> ConfigError:
    """A start that cannot be used."""
    return ConfigError(msg, left="Nothing was opened.", todo=todo, **facts)


def trimmed(shard: str, at: str, why: str, horizon: str) -> TrimmedError:
    """Rows behind a position are gone, or may be."""
    msg = f"Rows of {shard} after {at or 'its beginning'!r} are no longer kept by the stream: {why}"
    return TrimmedError(
        msg,
        left="The position is unchanged.",
        todo="Move the shard to TRIM_HORIZON with ALTER to go on behind the gap, or set property.on_data_loss.",
        partition=shard,
        at=at,
        horizon=horizon,
    )
