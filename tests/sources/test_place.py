"""Where files are, and what it costs to begin to read them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lading.errors import ConfigError
from lading.sources.files.place import parse_uri
from tests.sources.support import spec_of


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_a_bucket_and_a_pattern(scheme: str) -> None:
    place = parse_uri(f"{scheme}://shop/orders/*.csv.gz")
    assert (place.scheme, place.bucket, place.pattern, place.root) == ("s3", "shop", "orders/*.csv.gz", "s3://shop/")


@pytest.mark.parametrize("uri", ["", "s3://bucket", "s3:///key", "http://host/file", "../up/*.csv", "s3://b/{a", "///"])
def test_what_names_no_files_is_refused(uri: str) -> None:
    with pytest.raises(ConfigError, match="Invalid uri"):
        parse_uri(uri)


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
