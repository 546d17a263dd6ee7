"""Properties: defaults, bounds, the words of the errors, and back to text."""

from __future__ import annotations

import pytest

from lading.errors import NotSupportedError, SqlError
from lading.sources.files.properties import (
    FILE_NAMES,
    S3_NAMES,
    S3Properties,
    read_file_properties,
    read_file_source,
    read_s3_properties,
)
from lading.sql.properties.jobs import (
    JOB_PROPERTY_NAMES,
    StreamingJobProperties,
    read_job_properties,
)
from lading.sql.properties.routine import (
    ROUTINE_PROPERTY_NAMES,
    RoutineLoadProperties,
    read_routine_properties,
)
from tests.sql.kept import check_each_is_kept

LISTENING = {
    "listener.x.type": "success_file",
    "partition.mark_done_mode": "watermark",
    "partition.idle_time_to_done": "10 minutes",
    "partition.timestamp_pattern": "$dt $hh",
    "partition.timestamp_formatter": "yyyy-MM-dd HH",
    "partition.time_interval": "1 hour",
    "partition.time_zone": "Europe/Berlin",
}
S3 = {"uri": "s3://b/k/*.csv", "format": "csv"}


def test_the_defaults_of_a_routine_load() -> None:
    found = read_routine_properties({})
    assert found == RoutineLoadProperties()
    assert (found.desired_concurrent_number, found.max_batch_interval_s, found.max_batch_rows) == (256, 60, 20_000_000)
    assert (found.max_error_number, found.max_filter_ratio, found.format) == (0, 1.0, "csv")


@pytest.mark.parametrize(
    ("name", "value", "fragment"),
    [
        ("desired_concurrent_number", "0", "must be greater than 0"),
        ("desired_concurrent_number", "many", "must be greater than 0"),
        ("max_batch_interval", "0", "max_batch_interval should >= 1"),
        ("max_batch_rows", "199999", "max_batch_rows should > 200000"),
        ("max_batch_size", "104857599", "max_batch_size should between 100MB and 10GB"),
        ("max_batch_size", "10737418241", "max_batch_size should between 100MB and 10GB"),
        ("max_error_number", "-1", "max_error_number should >= 0"),
        ("max_filter_ratio", "1.1", "max_filter_ratio should between 0 and 1"),
        ("max_filter_ratio", "nan", "max_filter_ratio should between 0 and 1"),
        ("strict_mode", "yes", "strict_mode should be a boolean"),
        ("timezone", "Mars/Olympus", "time zone"),
        ("format", "parquet", "Invalid format type"),
        ("format", "xml", "format:xml is not supported."),
        ("jsonpaths", "$.a", "Invalid json path"),
        ("jsonpaths", '["a"]', "Invalid json path"),
        ("json_root", "a.b", "Invalid json path"),
        ("enclose", "''", "longer than one byte"),
        ("escape", "", "must be single-char"),
        ("partial_update_new_key_behavior", "ERROR", "can only be set when partial update is enabled"),
        ("partial_update_new_key_behavior", "APPEND", "can only be set when partial update is enabled"),
        ("workload_group", "g", "can not find workload group g"),
        ("load_to_single_tablet", "true", "the olap table must be with random distribution"),
        ("load_to_single_tablet", "perhaps", "load_to_single_tablet should be a boolean"),
        ("partial_columns", "true", "only supported in unique table MoW"),
        ("exec_mem_limit", "-1", "must be greater than 0"),
        ("send_batch_parallelism", "0", "must be greater than 0"),
        ("read_json_by_line", "true", "read_json_by_line is invalid property"),
        ("line_delimiter", ",", "line_delimiter is invalid property"),
        ("column_separator", ",", "column_separator is invalid property"),
        ("watermark.delay", "5 minutes", "watermark.delay needs watermark.column"),
        ("watermark.delay", "soon", "watermark.delay should be a length of time, and it is 'soon'"),
        ("watermark.delay", "-5 minutes", "watermark.delay should be a length of time"),
        ("watermark.delay", "1.5 hours", "watermark.delay should be a length of time"),
        ("watermark.column", " ", "watermark.column is a required property and must not be empty"),
        ("dedup.keys", "id", "dedup.keys needs a watermark"),
        ("dedup.keys", "id,", "dedup.keys has an empty part"),
        ("dedup.horizon", "1 day", "dedup.horizon needs dedup.keys"),
        ("watermark.late_rows", "keep", "watermark.late_rows should be one of QUARANTINE, DROP"),
        ("nosuch", "1", "nosuch is invalid property"),
    ],
)
def test_a_wrong_property_of_a_routine_load_is_refused(name: str, value: str, fragment: str) -> None:
    with pytest.raises(SqlError) as caught:
        read_routine_properties({name: value})
    assert fragment in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_batch_rows", "200000"),
        ("max_batch_size", "104857600"),
        ("max_batch_size", "10737418240"),
        ("timezone", "+08:00"),
    ],
)
def test_the_bounds_themselves_are_allowed(name: str, value: str) -> None:
    read_routine_properties({name: value})


ROUTINE = {
    "watermark.column": "at",
    "watermark.delay": "5 minutes",
    "watermark.idle_timeout": "90 seconds",
    "watermark.max_future": "2 hours",
    "watermark.late_rows": "DROP",
    "dedup.keys": "id,at",
    "dedup.horizon": "2 days",
    **LISTENING,
    "desired_concurrent_number": "3",
    "max_batch_interval": "20",
    "max_batch_rows": "300000",
    "max_batch_size": "209715200",
    "max_error_number": "7",
    "max_filter_ratio": "0.25",
    "strict_mode": "true",
    "timezone": "Asia/Shanghai",
    "partial_columns": "false",
    "unique_key_update_mode": "UPSERT",
    "exec_mem_limit": "1",
    "send_batch_parallelism": "2",
    "on_poison_record": "QUARANTINE",
    "schema.evolution": "ADD",
    "rescued_data_column": "_rescued",
    "errors.table": "shop.errors",
}
CSV = {"format": "csv", "enclose": '"', "escape": "\\", "empty_field_as_null": "true"}
JSON = {
    "format": "json",
    "jsonpaths": '["$.a", "$."]',
    "json_root": "$.x",
    "strip_outer_array": "true",
    "num_as_string": "true",
    "fuzzy_parse": "true",
}


ONE_VALUE = {"partial_columns", "unique_key_update_mode"}
REFUSED = {"partial_update_new_key_behavior", "workload_group", "load_to_single_tablet"}


@pytest.mark.parametrize("form", [CSV, JSON])
def test_every_routine_property_that_is_accepted_is_kept(form: dict[str, str]) -> None:
    given = {**ROUTINE, **form}
    check_each_is_kept(read_routine_properties, given, one_value=ONE_VALUE | ({"format"} if form is CSV else set()))


def test_the_samples_have_every_routine_property() -> None:
    assert {*ROUTINE, *CSV, *JSON} - {"listener.x.type"} == ROUTINE_PROPERTY_NAMES - REFUSED


def test_the_separator_of_a_routine_load_is_a_clause() -> None:
    assert read_routine_properties({}, column_separator="\\x01").csv.column_separator == "\x01"
    assert read_routine_properties({}).csv.column_separator == "\t"


def test_the_defaults_of_a_streaming_job() -> None:
    found = read_job_properties({})
    assert found == StreamingJobProperties()
    assert (found.max_interval_s, found.max_batch_files, found.max_batch_bytes) == (10, 256, 10_737_418_240)
    assert (found.session.enable_insert_strict, found.session.insert_max_filter_ratio) == (True, 1.0)


@pytest.mark.parametrize(
    ("name", "value", "fragment"),
    [
        ("max_interval", "0", "max_interval should > 1"),
        ("s3.max_batch_files", "0", "s3.max_batch_files should >=1"),
        ("s3.max_batch_bytes", "104857599", "should between 100MB and 10GB"),
        ("s3.max_batch_bytes", "1GB", "should between 100MB and 10GB"),
        ("offset", "", "Invalid format for offset"),
        ("offset", '{"file":"a"}', "Invalid format for offset"),
        ("offset", '["a"]', "Invalid format for offset"),
        ("offset", "a.csv", "Failed to initialize offset"),
        ("session.nosuch", "1", "Invalid session variable, [nosuch]"),
        ("session.enable_insert_strict", "maybe", "can't be set to the value of"),
        ("session.insert_max_filter_ratio", "2", "can't be set to the value of"),
        ("compute_group", "g", "only supported in cloud mode"),
        ("s3.ingestion_mode", "TWICE", "s3.ingestion_mode should be one of ONCE, CONTINUOUS"),
        ("s3.late_window", "0", "s3.late_window should >= 1"),
        ("s3.late_files", "DROP", "s3.late_files should be one of LOAD, SHOW"),
        ("s3.also_load", "a.csv", "s3.also_load should be a list of file names"),
        ("s3.also_load", '[""]', "s3.also_load should be a list of file names"),
        ("s3.also_load", str(["a"] * 1001).replace("'", '"'), "s3.also_load names 1001 files"),
        ("file.settle_seconds", "-1", "file.settle_seconds should >= 0"),
        ("nosuch", "1", "Invalid properties: [nosuch]"),
    ],
)
def test_a_wrong_property_of_a_streaming_job_is_refused(name: str, value: str, fragment: str) -> None:
    with pytest.raises(SqlError) as caught:
        read_job_properties({name: value})
    assert fragment in str(caught.value)


def test_every_job_property_that_is_accepted_is_kept() -> None:
    given = {
        "max_interval": "1",
        "s3.max_batch_files": "1",
        "s3.max_batch_bytes": "104857600",
        "max_batch_rows": "7",
        "max_batch_size": "104857600",
        "desired_concurrent_number": "3",
        "offset": '{"fileName": "ä/b.csv"}',
        "s3.ingestion_mode": "ONCE",
        "s3.late_files": "SHOW",
        "s3.late_window": "5",
        "s3.also_load": '["in/ä.csv", "in/b.csv"]',
        "file.settle_seconds": "30",
        "on_poison_record": "QUARANTINE",
        "file.on_error": "SKIP",
        "schema.evolution": "ADD_AND_WIDEN",
        "rescued_data_column": "_rescued",
        "errors.table": "lake.shop.errors",
        "watermark.column": "at",
        "watermark.delay": "5 minutes",
        "watermark.idle_timeout": "90 seconds",
        "watermark.max_future": "2 hours",
        "watermark.late_rows": "DROP",
        "dedup.keys": "id,at",
        "dedup.horizon": "2 days",
        **LISTENING,
        "session.enable_insert_strict": "false",
        "session.insert_max_filter_ratio": "0.5",
        "session.enable_strict_cast": "true",
        "session.insert_timeout": "60",
        "session.query_timeout": "60",
        "session.time_zone": "UTC",
        "__kept": "as it is",
    }
    record = check_each_is_kept(read_job_properties, given)
    assert given.keys() - {"__kept", "listener.x.type"} == JOB_PROPERTY_NAMES
    assert record.offset == "ä/b.csv"


@pytest.mark.parametrize(
    ("extra", "fragment"),
    [
        ({"uri": "ftp://b/k"}, "Invalid uri"),
        ({"uri": "s3://bucket"}, "Invalid uri"),
        ({"uri": ""}, "uri is a required property"),
        ({"format": "xlsx"}, "format:xlsx is not supported."),
        ({"s3.access_key": "a"}, "Can not build s3"),
        ({"s3.secret_key": "a"}, "Can not build s3"),
        ({"s3.session_token": "a"}, "Can not build s3"),
        ({"s3.external_id": "a"}, "Can not build s3"),
        ({"s3.sts_endpoint": "a"}, "Can not build s3"),
        ({"column_separator": "\\x1"}, "Hex str length error"),
        ({"enclose": "ab"}, "longer than one byte"),
        ({"resource": "r"}, "Resource r does not exist"),
        ({"skip_lines": "-1"}, "should >= 0"),
        ({"enable_text_validate_utf8": "false"}, "enable_text_validate_utf8 cannot be false"),
        ({"csv_schema": "a"}, "name:type"),
        ({"csv_schema": "a:bitmap"}, "is not known"),
        ({"csv_schema": "a:int;A:int"}, "has a name twice"),
        ({"skip_lines": "1", "format": "csv_with_names"}, "skip_lines cannot go with"),
        ({"column_separator": "\n"}, "contain one another"),
        ({"missing_columns": "drop"}, "should be one of ERROR, NULL"),
        ({"max_record_bytes": "0"}, "should >= 1"),
        ({"compress_type": "rar"}, "should be one of"),
        ({"path_partition_keys": "a,,b"}, "empty part"),
        ({"nosuch": "1"}, "nosuch is invalid property"),
    ],
)
def test_a_wrong_property_of_s3_is_refused(extra: dict[str, str], fragment: str) -> None:
    with pytest.raises(SqlError) as caught:
        read_s3_properties({**S3, **extra})
    assert fragment in str(caught.value)


FILES = {
    "format": "csv",
    "compress_type": "gz",
    "path_partition_keys": "day,hour",
    "missing_columns": "NULL",
    "max_record_bytes": "1000",
    "column_separator": "\\x01",
    "line_delimiter": "\\r\\n",
    "enclose": '"',
    "escape": "\\",
    "empty_field_as_null": "true",
    "trim_double_quotes": "true",
    "skip_lines": "2",
    "csv_schema": "id:bigint;price:decimal(10,2)",
    "read_json_by_line": "true",
    "strip_outer_array": "true",
    "json_root": "$.a",
    "jsonpaths": "[\"$.a['b c']\"]",
    "num_as_string": "true",
    "fuzzy_parse": "true",
}
ACCESS = {
    "s3.endpoint": "http://localhost:9000",
    "s3.region": "eu-west-1",
    "s3.access_key": "env:KEY",
    "s3.secret_key": "file:/run/secret",
    "s3.session_token": "t",
    "s3.role_arn": "arn:aws:iam::1:role/r",
    "s3.external_id": "e",
    "s3.sts_endpoint": "http://localhost:9001",
    "use_path_style": "true",
}


def test_every_file_property_that_is_accepted_is_kept() -> None:
    there = {"uri": "s3://b/k", **ACCESS, **FILES}
    check_each_is_kept(read_s3_properties, there)
    others = {"provider", "resource", "force_parsing_by_standard_uri", "s3.anonymous", "enable_text_validate_utf8"}
    assert there.keys() | others == S3_NAMES
    open_to_all = {"uri": "s3://b/k", **FILES, "s3.anonymous": "true"}
    check_each_is_kept(read_s3_properties, open_to_all)
    here = {"uri": "file:///k", **FILES}
    check_each_is_kept(read_file_properties, here)
    assert here.keys() | {"enable_text_validate_utf8"} == FILE_NAMES
    assert read_file_properties({**here, "enable_text_validate_utf8": "true"}) == read_file_properties(here)


def test_the_defaults_of_files() -> None:
    found = read_s3_properties(S3)
    assert isinstance(found, S3Properties)
    assert (found.files.csv.column_separator, found.files.csv.line_delimiter) == ("\t", "\n")
    assert found.files.json.read_by_line
    assert not read_s3_properties({**S3, "strip_outer_array": "true"}).files.json.read_by_line
    assert read_s3_properties({**S3, "strip_outer_array": "false"}).files.json.read_by_line


def test_file_reads_a_bucket_as_s3_does() -> None:
    given = {**S3, **ACCESS}
    found = read_file_source("FILE", given)
    assert found == read_file_source("S3", given) == read_s3_properties(given)


def test_secrets_are_not_in_the_repr() -> None:
    assert "sesame" not in repr(read_s3_properties({**S3, "s3.access_key": "sesame", "s3.secret_key": "sesame"}))


def test_partial_updates_are_understood_and_refused() -> None:
    given = {"unique_key_update_mode": "update_fixed_columns"}
    with pytest.raises(NotSupportedError, match="unique table MoW"):
        read_routine_properties(given)
