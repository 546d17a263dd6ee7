"""What the driver makes of a task that could not read a file: only bad content counts as such. No Spark is started."""

from __future__ import annotations

import pytest

from lading.pipeline.stage import failed_batch

SAID = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "pyarrow/io.pxi", line 1, in x
OSError: Truncated compressed stream

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/x/reader.py", line 40, in read_splits
lading.errors.{error}. Nothing of this batch was committed; the position is unchanged.

 SQLSTATE: 38000
    at org.apache.spark.api.python"""


@pytest.mark.parametrize(
    ("error", "code", "retry"),
    [
        ("SourceError: File file:///in/2.csv.gz cannot be read: Truncated compressed stream", "FileUnreadable", False),
        ("StorageError: File s3://b/ cannot be read: x could not be fetched: 503 Slow Down", "Stage", True),
        ("StageError: File s3://b/ cannot be read: x was replaced between listing and reading", "Stage", True),
        ("SourceError: File s3://b/x cannot be read by the libraries of this machine: no codec", "Source", False),
    ],
)
def test_only_bad_content_is_an_unreadable_file(error: str, code: str, retry: bool) -> None:
    failed = failed_batch(Exception(SAID.format(error=error)))
    assert (failed.code, failed.retry) == (code, retry)
    assert error.partition(": ")[2] in str(failed)
