"""One reader of the text, one function from what it read to what runs."""

from __future__ import annotations

import pickle

import pytest

from lading.errors import ConfigError, SqlError
from lading.model.s3_access import S3Access
from lading.sources.files.kind import files_spec_of
from lading.sources.files.properties import COMPRESSIONS, FORMATS, read_file_source
from lading.sources.files.spec import Compression, FilesSpec, Format, Ingestion, LateFiles, MissingColumns
from lading.sources.registry import check_load
from lading.sql.statements.jobs import CreateJob
from lading.sql.statements.load_specs import load_spec
from lading.sql.syntax.parse import parse_statement

S3 = {"uri": "s3://b/k", "format": "csv"}


def spec(source: dict[str, str], job: dict[str, str] | None = None, *, function: str = "S3") -> FilesSpec:
    """What a statement with these properties would run by."""
    pairs = [", ".join(f'"{name}"="{value}"' for name, value in part.items()) for part in (job or {}, source)]
    text = f"CREATE JOB j PROPERTIES({pairs[0]}) ON STREAMING DO INSERT INTO t SELECT * FROM {function}({pairs[1]})"
    statement = parse_statement(text if job else text.replace("PROPERTIES() ", ""))
    assert isinstance(statement, CreateJob)
    check_load(statement)
    asked = read_file_source(function, statement.insert.source.properties)
    return files_spec_of(asked, load_spec(statement).intake)


KEYS = {
    "s3.access_key": "AKIA-secret",
    "s3.secret_key": "very-secret",
    "s3.session_token": "also-secret",
    "s3.endpoint": "s3.eu-west-1.amazonaws.com",
    "s3.region": "eu-west-1",
    "s3.role_arn": "arn:aws:iam::1:role/r",
    "s3.external_id": "outer-secret",
    "s3.sts_endpoint": "sts.eu-west-1.amazonaws.com",
    "use_path_style": "true",
}


@pytest.mark.parametrize("function", ["S3", "FILE"])
def test_a_spec_is_read_pickles_and_hides_its_secrets(function: str) -> None:
    source = {
        "uri": "s3a://shop/orders/*.csv.gz",
        "format": "CSV_WITH_NAMES",
        **KEYS,
        "column_separator": "|",
        "compress_type": "GZ",
        "path_partition_keys": "year,month",
        "missing_columns": "null",
        "max_record_bytes": "1000",
        "csv_schema": "id:int; name:string",
    }
    job = {"s3.ingestion_mode": "once", "s3.late_files": "LOAD"}
    found = spec(source, job, function=function)
    assert (found.place.scheme, found.place.bucket, found.place.pattern) == ("s3", "shop", "orders/*.csv.gz")
    assert found.s3 == S3Access(
        endpoint="s3.eu-west-1.amazonaws.com",
        region="eu-west-1",
        access_key="AKIA-secret",
        secret_key="very-secret",
        session_token="also-secret",
        role_arn="arn:aws:iam::1:role/r",
        external_id="outer-secret",
        sts_endpoint="sts.eu-west-1.amazonaws.com",
        path_style=True,
    )
    assert (found.format, found.compression) == (Format.CSV_WITH_NAMES, Compression.GZIP)
    assert (found.ingestion, found.late_files, found.remembered_keys) == (Ingestion.ONCE, LateFiles.LOAD, 10_000)
    assert found.path_partition_keys == ("year", "month")
    assert (found.missing_columns, found.max_record_bytes) == (MissingColumns.NULL, 1000)
    assert found.schema is not None
    assert found.schema.names == ["id", "name"]
    assert "secret" not in repr(found)
    assert pickle.loads(pickle.dumps(found)) == found


def test_what_is_not_said_is_as_the_source_has_it() -> None:
    found = spec(S3)
    place = found.place
    assert found == FilesSpec(place=place, format=Format.CSV)
    assert spec(S3, {"s3.late_window": "7"}).remembered_keys == 7
    assert spec({**S3, "strip_outer_array": "false"}).json.read_by_line


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_every_compression_that_is_accepted_is_known_to_the_source(compression: str) -> None:
    assert isinstance(spec({**S3, "compress_type": compression}).compression, Compression)


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_that_is_accepted_is_known_to_the_source(form: str) -> None:
    assert spec({**S3, "format": form, "csv_schema": "a:int"}).format.value == form
    assert (spec({**S3, "format": form, "csv_schema": "a:int"}).schema is not None) == form.startswith("csv")


@pytest.mark.parametrize("uri", ["in/*.csv", "/data/in/*.csv", "file:///data/in/*.csv"])
def test_files_on_a_disk_need_no_store_and_take_none(uri: str) -> None:
    assert spec({"uri": uri, "format": "csv"}, function="FILE").place.scheme == "file"
    with pytest.raises(SqlError, match=r"s3.region is invalid property of FILE\(…\) for files on a disk"):
        spec({"uri": uri, "format": "csv", "s3.region": "eu-west-1"}, function="FILE")


@pytest.mark.parametrize("uri", ["s3://b/{a", "s3://b/[z-a]"])
def test_a_glob_that_is_none_is_refused(uri: str) -> None:
    with pytest.raises(ConfigError, match="Invalid uri"):
        spec({**S3, "uri": uri})


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"nonsense": "1"}, "nonsense is invalid property"),
        ({"format": "avro"}, "format:avro is not supported"),
        ({"compress_type": "rar"}, "compress_type should be one of"),
        ({"uri": "s3://bucket"}, "Invalid uri"),
        ({"uri": "http://host/file"}, "Invalid uri"),
        ({"uri": "file:///x"}, "Invalid uri"),
        ({"s3.access_key": "x"}, "Can not build s3"),
        ({"s3.external_id": "x"}, r"Can not build s3: s3\.external_id needs s3\.role_arn"),
        ({"s3.sts_endpoint": "x"}, r"Can not build s3: s3\.sts_endpoint needs s3\.role_arn"),
        ({"enclose": "ab"}, "longer than one byte"),
        ({"escape": ""}, "must be single-char"),
        ({"column_separator": "\\\\x1"}, "even number of digits"),
        ({"column_separator": "\\\\xff"}, "not UTF-8"),
        ({"column_separator": ""}, "must not be empty"),
        ({"column_separator": "\\n"}, "contain one another"),
        ({"line_delimiter": "a\\tb"}, "contain one another"),
        ({"enclose": "\\t"}, "contain one another"),
        ({"skip_lines": "1", "format": "csv_with_names"}, "skip_lines cannot go with"),
        ({"skip_lines": "-1"}, "should >= 0"),
        ({"max_record_bytes": "0"}, "should >= 1"),
        ({"missing_columns": "drop"}, "should be one of ERROR, NULL"),
        ({"csv_schema": "a:int;A:int"}, "has a name twice"),
        ({"strip_outer_array": "yes"}, "should be a boolean"),
        ({"jsonpaths": "$.a"}, "Invalid json path"),
        ({"jsonpaths": '[\\"a\\"]'}, "Invalid json path"),
        ({"json_root": "data"}, "Invalid json path"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(properties: dict[str, str], message: str) -> None:
    with pytest.raises(SqlError, match=message) as caught:
        spec({**S3, **properties})
    assert caught.value.line == 1
    assert any(f'"{name}"=' in caught.value.offending for name in properties)
