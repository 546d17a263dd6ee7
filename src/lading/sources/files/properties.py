"""Properties of `S3(…)` and `FILES(…)` as they stand in SQL, turned into a FilesSpec."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar
from urllib.parse import unquote

import pyarrow as pa

from lading.errors import ConfigError
from lading.sources.files.glob import compile_glob
from lading.sources.files.jsonpath import parse_jsonpath
from lading.sources.files.spec import (
    MAX_RECORD_BYTES,
    Compression,
    CsvOptions,
    FilesSpec,
    Format,
    Ingestion,
    JsonOptions,
    LateFiles,
    MissingColumns,
    Place,
    S3Access,
)

_S3_SCHEMES = ("s3", "s3a", "s3n")
_ALIASES = {"gzip": "gz", "none": "plain", "snappyblock": "snappy", "lz4frame": "lz4", "lz4_frame": "lz4"}
_IGNORED = {"fuzzy_parse", "provider", "resource", "force_parsing_by_standard_uri", "enable_text_validate_utf8"}
"""Taken and without effect: rows are the same with them and without."""
_REFUSED = {"s3.role_arn", "s3.external_id"}
_KNOWN = {
    *("uri", "format", "compress_type", "path_partition_keys", "missing_columns"),
    *("s3.access_key", "s3.secret_key", "s3.session_token", "s3.region", "s3.endpoint", "use_path_style"),
    *("column_separator", "line_delimiter", "enclose", "escape", "skip_lines", "empty_field_as_null"),
    *("trim_double_quotes", "csv_schema", "read_json_by_line", "strip_outer_array", "json_root", "jsonpaths"),
    *("num_as_string", "s3.ingestion_mode", "s3.late_files", "s3.late_window", "max_record_bytes"),
}
_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\r": "\r", "\\0": "\0", "\\\\": "\\"}
_E = TypeVar("_E", bound=Enum)


def parse_properties(properties: Mapping[str, str]) -> FilesSpec:
    """A FilesSpec, without a schema unless csv_schema gives one. Raises ConfigError for what is unknown or wrong."""
    given = {key.lower(): value for key, value in properties.items()}
    unknown = sorted(given.keys() - _KNOWN - _IGNORED - _REFUSED)
    if unknown:
        msg = f"Invalid properties: {unknown}"
        raise _wrong(msg, f"Known are: {', '.join(sorted(_KNOWN))}.")
    if refused := sorted(given.keys() & _REFUSED):
        msg = f"Not supported yet: {refused}"
        raise _wrong(msg, "Give keys, or leave them to the default chain.")
    kind = _choice(Format, given, "format", "csv")
    return FilesSpec(
        place=parse_uri(given.get("uri", "")),
        format=kind,
        s3=_access(given),
        compression=_choice(Compression, given, "compress_type", "auto"),
        csv=_csv(given, kind),
        json=_json(given),
        path_partition_keys=_names(given.get("path_partition_keys", "")),
        missing_columns=_choice(MissingColumns, given, "missing_columns", "error"),
        ingestion=_choice(Ingestion, given, "s3.ingestion_mode", "continuous"),
        late_files=_choice(LateFiles, given, "s3.late_files", "count"),
        late_window=_number(given, "s3.late_window", 0),
        schema=_csv_schema(given),
        max_record_bytes=_number(given, "max_record_bytes", MAX_RECORD_BYTES),
    )


def parse_uri(uri: str) -> Place:
    """Take a uri apart: `s3://`, `s3a://`, `s3n://`, `file://` or a path, which is made absolute here."""
    scheme, sep, rest = uri.partition("://")
    if not sep:
        scheme, rest = "file", uri
    elif scheme == "file":
        rest = unquote(rest.removeprefix("localhost"))
    if not rest.strip("/"):
        msg = f"Invalid uri: {uri!r}"
        raise _wrong(msg, "Name a place with files, such as s3://bucket/folder/*.csv.")
    if scheme == "file":
        place = Place(scheme="file", bucket="", pattern=_absolute(rest))
    elif scheme in _S3_SCHEMES and rest.partition("/")[0] and rest.partition("/")[2]:
        place = Place(scheme="s3", bucket=rest.partition("/")[0], pattern=rest.partition("/")[2])
    else:
        msg = f"Invalid uri: {uri!r}"
        raise _wrong(msg, "Use s3://bucket/key, file:///path or a path.")
    compile_glob(place.pattern)
    return place


def parse_separator(text: str) -> str:
    """A separator as SQL writes it: to the letter, with `\\t` and the like, or bytes as in `\\x01`."""
    found = re.fullmatch(r"(?:\\x|0x)([0-9a-fA-F]*)", text)
    if found:
        if not found[1] or len(found[1]) % 2:
            msg = f"The separator {text!r} has an odd number of digits"
            raise _wrong(msg, "Write two digits for each byte.")
        try:
            return bytes.fromhex(found[1]).decode()
        except UnicodeDecodeError as error:
            msg = f"The separator {text!r} is not UTF-8"
            raise _wrong(msg, "Use another one.") from error
    return re.sub(r"\\[ntr0\\]|\\x[0-9a-fA-F]{2}", _unescape, text)


def _unescape(found: re.Match[str]) -> str:
    return _ESCAPES.get(found[0]) or chr(int(found[0][2:] or "0", 16))


def _absolute(pattern: str) -> str:
    # A trailing slash names a folder: everything in it.
    whole = pattern if pattern.startswith("/") else os.getcwd() + "/" + pattern.removeprefix("./")
    folders = [part for part in whole.split("/") if part not in ("", ".")]
    if ".." in folders:
        msg = f"Invalid uri: {pattern!r} has `..` in it"
        raise _wrong(msg, "Write the path without it.")
    return "/" + "/".join(folders) + ("/*" if pattern.endswith("/") else "")


def _access(given: Mapping[str, str]) -> S3Access:
    endpoint = given.get("s3.endpoint", "")
    if bool(given.get("s3.access_key")) != bool(given.get("s3.secret_key")):
        msg = "Can not build s3: only one of s3.access_key and s3.secret_key is set"
        raise _wrong(msg, "Set both or neither.")
    return S3Access(
        endpoint=f"https://{endpoint}" if endpoint and "://" not in endpoint else endpoint,
        region=given.get("s3.region", ""),
        access_key=given.get("s3.access_key", ""),
        secret_key=given.get("s3.secret_key", ""),
        session_token=given.get("s3.session_token", ""),
        path_style=_truth(given, "use_path_style"),
    )


def _csv(given: Mapping[str, str], kind: Format) -> CsvOptions:
    options = CsvOptions(
        column_separator=parse_separator(given.get("column_separator", "\t")),
        line_delimiter=parse_separator(given.get("line_delimiter", "\n")),
        enclose=given.get("enclose", ""),
        escape=given.get("escape", ""),
        skip_lines=_number(given, "skip_lines", 0),
        empty_field_as_null=_truth(given, "empty_field_as_null"),
        trim_double_quotes=_truth(given, "trim_double_quotes"),
    )
    if len(options.enclose.encode()) > 1:
        msg = "enclose is longer than one byte"
        raise _wrong(msg, "Use one character.")
    if "escape" in given and len(options.escape.encode()) != 1:
        msg = "escape must be single-char"
        raise _wrong(msg, "Use one character.")
    if not options.column_separator or not options.line_delimiter:
        msg = "A separator is empty"
        raise _wrong(msg, "Set column_separator and line_delimiter to something, or leave them out.")
    if _overlaps(options):
        msg = "Separators, enclose and escape contain one another"
        raise _wrong(msg, "Use different characters.")
    if kind.header_lines and options.skip_lines:
        msg = f"skip_lines cannot go with {kind.value}"
        raise _wrong(msg, "The lines with names are left out without it.")
    return options


def _overlaps(options: CsvOptions) -> bool:
    separator, delimiter, enclose = options.column_separator, options.line_delimiter, options.enclose
    in_quotes = bool(enclose) and enclose in separator + delimiter + options.escape
    return separator in delimiter or delimiter in separator or in_quotes


def _json(given: Mapping[str, str]) -> JsonOptions:
    paths = given.get("jsonpaths", "").strip()
    try:
        listed: Any = json.loads(paths) if paths else []
    except ValueError as error:
        msg = f"Invalid json path: {paths}"
        raise _wrong(msg, 'Write a JSON list such as ["$.a", "$.b"].') from error
    if not isinstance(listed, list) or not all(isinstance(path, str) for path in listed):
        msg = f"Invalid json path: {paths}"
        raise _wrong(msg, 'Write a JSON list such as ["$.a", "$.b"].')
    root = given.get("json_root", "").strip()
    for path in [*listed, *([root] if root else [])]:
        parse_jsonpath(path)
    strips = _truth(given, "strip_outer_array")
    return JsonOptions(
        read_by_line=_truth(given, "read_json_by_line", default=not strips),
        strip_outer_array=strips,
        num_as_string=_truth(given, "num_as_string"),
        json_root=root,
        jsonpaths=tuple(listed),
    )


def _csv_schema(given: Mapping[str, str]) -> pa.Schema | None:
    """Names of columns from `name:type;…`. Every column is read as a string; types are the mapping's business."""
    names = [part.partition(":")[0].strip() for part in given.get("csv_schema", "").split(";") if part.strip()]
    if len(set(names)) < len(names) or not all(names):
        msg = f"csv_schema has a name twice or an empty one: {given['csv_schema']}"
        raise _wrong(msg, "Write name:type;name:type.")
    return pa.schema([pa.field(name, pa.string()) for name in names]) if names else None


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _truth(given: Mapping[str, str], key: str, *, default: bool = False) -> bool:
    text = given.get(key, str(default)).strip().lower()
    if text not in ("true", "false"):
        msg = f"{key} should be a boolean and is {given[key]!r}"
        raise _wrong(msg, "Write true or false.")
    return text == "true"


def _number(given: Mapping[str, str], key: str, default: int) -> int:
    text = given.get(key, str(default)).strip()
    if not text.isdecimal():
        msg = f"{key} should be a whole number and is {given[key]!r}"
        raise _wrong(msg, "Write it in digits.")
    return int(text)


def _choice(kind: type[_E], given: Mapping[str, str], key: str, default: str) -> _E:
    text = given.get(key, default).strip().lower()
    try:
        return kind(_ALIASES.get(text, text) if kind is Compression else text)
    except ValueError as error:
        known = ", ".join(str(member.value) for member in kind)
        msg = f"{key}:{given[key]} is not supported."
        raise _wrong(msg, f"Known are: {known}.") from error


def _wrong(what: str, todo: str) -> ConfigError:
    return ConfigError(what.rstrip("."), left="Nothing was changed.", todo=todo)
