"""Properties of S3(…) and FILE(…)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lading.model.row_formats import CsvOptions, JsonOptions
from lading.model.s3_access import S3Access
from lading.sql.properties.row_formats import (
    CSV_RULES,
    JSON_RULES,
    read_csv_options,
    read_json_options,
)
from lading.sql.properties.values import (
    Rule,
    boolean,
    known_names,
    names,
    needed,
    never,
    read_fields,
    refuse,
    text,
    whole,
    word,
)

FORMATS = ("csv", "csv_with_names", "csv_with_names_and_types", "json", "parquet", "orc")
COMPRESSIONS = (
    *("auto", "plain", "none", "gz", "gzip", "bz2", "lz4", "lz4frame", "lz4block"),
    *("zstd", "snappy", "snappyblock", "deflate"),
)
HEADERS = ("csv_with_names", "csv_with_names_and_types")
_S3_SCHEME = re.compile(r"\s*s3[an]?://", re.IGNORECASE)
_S3_URI = re.compile(r"s3[an]?://[^/]+/.+")
_FILE_URI = re.compile(r"file://.+|/.+|(?![A-Za-z][A-Za-z0-9+.-]*:).+")
_REGION = re.compile(r"[A-Za-z0-9-]{1,63}")
_IGNORED = ("provider", "force_parsing_by_standard_uri")
"""Taken and kept in the statement; they say nothing that a load needs to know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """How the files are written, wherever they are."""

    format: str
    compress_type: str = "auto"
    """auto: by the end of the name."""
    path_partition_keys: tuple[str, ...] = ()
    """Columns whose values stand in the path, as in day=2026-08-01/."""
    missing_columns: str = "ERROR"
    """ERROR: a file that lacks a column stops the job. NULL: the column is NULL for its rows."""
    max_record_bytes: int | None = None
    """A longer row stops the job. None: as the source has it."""
    csv: CsvOptions = field(default_factory=CsvOptions)
    json: JsonOptions = field(default_factory=JsonOptions)


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Properties:
    """Files in an object store."""

    uri: str
    files: FileOptions
    access: S3Access = field(default_factory=S3Access)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileProperties:
    """Files on a disk that every executor sees."""

    uri: str
    files: FileOptions


def _region(name: str, given: str) -> str:
    """A region becomes part of the name of a host, so it must be a word."""
    if not _REGION.fullmatch(given.strip()):
        msg = f"Invalid region format: {name} is {given!r}"
        raise refuse(msg, property=name, value=given, todo="Write for example eu-west-1.")
    return given.strip()


_FORMAT = word(*FORMATS, message="format:{} is not supported.")
_FILE_RULES = (
    Rule(name="format", field="format", read=_FORMAT),
    Rule(name="compress_type", field="compress_type", read=word(*COMPRESSIONS)),
    Rule(name="path_partition_keys", field="path_partition_keys", read=names),
    Rule(name="missing_columns", field="missing_columns", read=word("ERROR", "NULL")),
    Rule(name="max_record_bytes", field="max_record_bytes", read=whole(lambda n: n >= 1, "should >= 1")),
)
_ACCESS_RULES = (
    Rule(name="s3.endpoint", field="endpoint", read=needed),
    Rule(name="s3.region", field="region", read=_region),
    Rule(name="s3.access_key", field="access_key", read=needed),
    Rule(name="s3.secret_key", field="secret_key", read=needed),
    Rule(name="s3.session_token", field="session_token", read=needed),
    Rule(name="s3.role_arn", field="role_arn", read=needed),
    Rule(name="s3.external_id", field="external_id", read=text),
    Rule(name="s3.sts_endpoint", field="sts_endpoint", read=needed),
    Rule(name="use_path_style", field="path_style", read=boolean),
    Rule(name="s3.anonymous", field="anonymous", read=boolean),
    Rule(name="resource", field="", read=never("Resource {} does not exist", "Give the keys or the role instead.")),
)
_COMMON_NAMES = frozenset(("uri", *(rule.name for rule in (*_FILE_RULES, *CSV_RULES, *JSON_RULES))))
FILE_NAMES = _COMMON_NAMES
"""Properties of FILE(…) for files on a disk."""
S3_NAMES = _COMMON_NAMES | {rule.name for rule in _ACCESS_RULES} | set(_IGNORED)
"""Properties of S3(…), and of FILE(…) whose uri is one of S3."""
S3_TAKEN = S3_NAMES.difference(_IGNORED, ("resource",))
"""Those that do something."""


def read_file_source(function: str, properties: Mapping[str, str]) -> S3Properties | FileProperties:
    """The properties of S3(…) or FILE(…)."""
    if function == "S3" or is_s3_uri(properties.get("uri", "")):
        return read_s3_properties(properties, function)
    return read_file_properties(properties)


def implied_quotes(properties: Mapping[str, str]) -> dict[str, str]:
    """`enclose` for CSV files of a new job that does not say it: double quotes, unless they mean something else.

    A field counts as enclosed only where it begins with a quote, so that files without quotes are read as before.
    `"enclose" = ""` turns it off.
    """
    form = properties.get("format", "").strip().lower()
    others = ("column_separator", "line_delimiter", "escape")
    has_meaning = any('"' in properties.get(name, "") for name in others)
    trims = properties.get("trim_double_quotes", "").strip().lower() == "true"
    if "enclose" in properties or not form.startswith("csv") or has_meaning or trims:
        return {}
    return {"enclose": '"'}


def is_s3_uri(uri: str) -> bool:
    """Whether the files are objects in a bucket; otherwise they are on a disk."""
    return _S3_SCHEME.match(uri) is not None


def read_s3_properties(properties: Mapping[str, str], function: str = "S3") -> S3Properties:
    """The properties of S3(…), or of FILE(…) whose uri is one of S3."""
    _check_names(function, properties, S3_NAMES)
    uri = _uri(properties, _S3_URI, "s3://bucket/path")
    access = S3Access(**read_fields(_ACCESS_RULES, properties))
    if bool(access.access_key) != bool(access.secret_key):
        there, missing = ("s3.access_key", "s3.secret_key")[:: 1 if access.access_key else -1]
        msg = f"Can not build s3: s3.access_key and s3.secret_key go together, and {missing} must also be set"
        raise refuse(msg, property=there)
    if access.session_token and not access.access_key:
        msg = "Can not build s3: s3.session_token needs s3.access_key and s3.secret_key"
        raise refuse(msg, property="s3.session_token")
    if access.external_id and not access.role_arn:
        msg = "Can not build s3: s3.external_id needs s3.role_arn"
        raise refuse(msg, property="s3.external_id")
    if access.sts_endpoint and not access.role_arn:
        msg = "Can not build s3: s3.sts_endpoint needs s3.role_arn"
        raise refuse(msg, property="s3.sts_endpoint")
    if access.anonymous and (access.access_key or access.role_arn):
        msg = "Can not build s3: s3.anonymous cannot go with keys or a role"
        raise refuse(msg, property="s3.anonymous")
    return S3Properties(uri=uri, files=_files(properties), access=access)


def read_file_properties(properties: Mapping[str, str]) -> FileProperties:
    """The properties of FILE(…) for files on a disk."""
    _check_names("FILE", properties, FILE_NAMES)
    uri = _uri(properties, _FILE_URI, "file:///path, /path or a relative path")
    return FileProperties(uri=uri, files=_files(properties))


def _check_names(function: str, properties: Mapping[str, str], known: frozenset[str]) -> None:
    for name in properties:
        if name in known:
            continue
        msg = f"{name} is invalid property of {function}(…)"
        if name in S3_NAMES:
            msg = f"{msg} for files on a disk"
            raise refuse(msg, property=name, todo="It goes with a uri that begins with s3://.")
        raise refuse(msg, property=name, todo=known_names(name, known))


def _uri(properties: Mapping[str, str], form: re.Pattern[str], example: str) -> str:
    uri = properties.get("uri", "").strip()
    if not uri:
        msg = "uri is a required property"
        raise refuse(msg, property="uri")
    if not form.fullmatch(uri):
        msg = f"Invalid uri {uri!r}: it must have the form {example}"
        raise refuse(msg, property="uri", value=uri)
    return uri


def _files(properties: Mapping[str, str]) -> FileOptions:
    if "format" not in properties:
        msg = "format is a required property"
        raise refuse(
            msg, property="format", todo=f"Say one of {', '.join(FORMATS)}; DESCRIBE FROM FILE(…) finds out which."
        )
    files = FileOptions(
        **read_fields(_FILE_RULES, properties), csv=read_csv_options(properties), json=read_json_options(properties)
    )
    if files.format in HEADERS and files.csv.skip_lines:
        msg = f"skip_lines cannot go with {files.format}"
        raise refuse(msg, property="skip_lines", todo="The lines with names are left out without it.")
    return files
