"""Properties of the table function."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from lading.errors import ConfigError
from lading.sources.files.properties import parse_properties, parse_separator, parse_uri
from lading.sources.files.spec import Compression, Format, Ingestion, LateFiles
from tests.sources.support import spec_of


def test_a_spec_is_read_pickles_and_hides_its_secrets() -> None:
    spec = parse_properties(
        {
            "URI": "s3a://shop/orders/*.csv.gz",
            "format": "CSV_WITH_NAMES",
            "s3.access_key": "AKIA-secret",
            "s3.secret_key": "very-secret",
            "s3.session_token": "also-secret",
            "s3.endpoint": "s3.eu-west-1.amazonaws.com",
            "s3.region": "eu-west-1",
            "use_path_style": "true",
            "column_separator": "|",
            "compress_type": "GZ",
            "s3.ingestion_mode": "once",
            "s3.late_files": "LOAD",
            "path_partition_keys": "year,month",
        }
    )
    assert (spec.place.scheme, spec.place.bucket, spec.place.pattern) == ("s3", "shop", "orders/*.csv.gz")
    assert spec.s3.endpoint == "https://s3.eu-west-1.amazonaws.com"
    assert (spec.format, spec.compression) == (Format.CSV_WITH_NAMES, Compression.GZIP)
    assert (spec.ingestion, spec.late_files, spec.remembered_keys) == (Ingestion.ONCE, LateFiles.LOAD, 10_000)
    assert spec.path_partition_keys == ("year", "month")
    assert "secret" not in repr(spec)
    assert pickle.loads(pickle.dumps(spec)) == spec


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"uri": "s3://b/k", "nonsense": "1"}, "Invalid properties"),
        ({"uri": "s3://b/k", "format": "avro"}, "format:avro is not supported"),
        ({"uri": "s3://b/k", "compress_type": "rar"}, "compress_type:rar is not supported"),
        ({"uri": ""}, "Invalid uri"),
        ({"uri": "s3://bucket"}, "Invalid uri"),
        ({"uri": "http://host/file"}, "Invalid uri"),
        ({"uri": "../up/*.csv"}, "Invalid uri"),
        ({"uri": "s3://b/{a"}, "Invalid uri"),
        ({"uri": "s3://b/k", "s3.access_key": "x"}, "Can not build s3"),
        ({"uri": "s3://b/k", "enclose": "ab"}, "longer than one byte"),
        ({"uri": "s3://b/k", "escape": ""}, "must be single-char"),
        ({"uri": "s3://b/k", "column_separator": "\\x1"}, "odd number of digits"),
        ({"uri": "s3://b/k", "column_separator": "\\xff"}, "not UTF-8"),
        ({"uri": "s3://b/k", "column_separator": ""}, "separator is empty"),
        ({"uri": "s3://b/k", "column_separator": "\n"}, "contain one another"),
        ({"uri": "s3://b/k", "enclose": "\t"}, "contain one another"),
        ({"uri": "s3://b/k", "skip_lines": "1", "format": "csv_with_names"}, "skip_lines cannot go with"),
        ({"uri": "s3://b/k", "skip_lines": "-1"}, "whole number"),
        ({"uri": "s3://b/k", "strip_outer_array": "yes"}, "should be a boolean"),
        ({"uri": "s3://b/k", "jsonpaths": "$.a"}, "Invalid json path"),
        ({"uri": "s3://b/k", "jsonpaths": '["a"]'}, "Invalid json path"),
        ({"uri": "s3://b/k", "json_root": "data"}, "Invalid json path"),
        ({"uri": "s3://b/k", "s3.role_arn": "arn"}, "Not supported yet"),
    ],
)
def test_what_is_wrong_is_refused(properties: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_properties(properties)


@pytest.mark.parametrize(
    ("uri", "pattern"),
    [
        ("file:///data/in/*.csv", "/data/in/*.csv"),
        ("file:///data/a%20b/x?.csv", "/data/a b/x?.csv"),
        ("/data//in/./*.csv", "/data/in/*.csv"),
        ("/data/in/", "/data/in/*"),
    ],
)
def test_local_places(uri: str, pattern: str) -> None:
    assert parse_uri(uri).pattern == pattern


def test_a_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_bytes(b"1\n")
    assert parse_uri("./in/*.csv").pattern == f"{tmp_path}/in/*.csv"
    assert spec_of(uri="in/*.csv").schema is not None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\\t", "\t"),
        ("\\x01", "\x01"),
        ("\\x0102", "\x01\x02"),
        ("||", "||"),
        ("a\\nb", "a\nb"),
        ("\\\\", "\\"),
        ("é", "é"),
    ],
)
def test_separators(text: str, expected: str) -> None:
    assert parse_separator(text) == expected


def test_reading_is_quick_to_begin_and_silent(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"1\t2\nbad\n\xff\t\\N\n")
    (tmp_path / "a.json").write_bytes(b'{"a": 1.5, "b": null}\n{"a": 2, "b": "x"}\nbad\n')
    code = f"""
import sys
from tests.sources.support import load, spec_of
import lading.sources.files.reader
sys.modules.pop("boto3")
rows = load(spec_of(uri="{tmp_path}/*.csv"))
assert len(rows) == 3, rows
assert len(load(spec_of(uri="{tmp_path}/*.json", format="json"))) == 3
heavy = [name for name in ("boto3", "pandas", "pyspark", "pyarrow.parquet", "pyarrow.orc") if name in sys.modules]
assert not heavy, heavy
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
