"""What a look, and a batch of one new file, cost beside so many files that are loaded already: on a disk, and in S3."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from statistics import median
from typing import Any

import boto3
from tests.tables.s3_server import S3Server, serve_s3

from bench.pages import Pages, markdown_table
from bench.scale import FOLDER, scaled
from bench.scaling.plot import Plot
from bench.scaling.pretend import TABLE, PretendLading
from lading.service.runtime.runner import JobRunner

LOADED = (10, 1_000, 10_000, 100_000)
MOST_IN_BUCKET = 10_000
"""moto looks through all objects of a bucket for each page of a listing: with more, moto would be measured."""
LOOKS = 9
BODY = "id,city\n1,essen\n"
Put = Callable[[range], None]
"""Makes the files with these numbers."""


def run(pages: Pages) -> None:
    """Measure both places, and show the table and its plot."""
    most = scaled(LOADED[-1], least=LOADED[1])
    marks = sorted({min(mark, most) for mark in LOADED})
    lines: dict[str, list[tuple[float, float]]] = {}
    rows: list[list[str]] = []
    with serve_s3() as server:
        places = (("a disk", _on_disk, most), ("S3 (moto)", _in_bucket(server), MOST_IN_BUCKET))
        for mark in marks:
            for name, place in [(name, place) for name, place, limit in places if mark <= limit]:
                look_ms, batch_ms = _measure(place, mark)
                lines.setdefault(f"{name}: a look", []).append((mark, look_ms))
                lines.setdefault(f"{name}: a batch", []).append((mark, batch_ms))
                rows.append([name, f"{mark:,}", f"{look_ms:.1f} ms", f"{batch_ms:.1f} ms"])
                print(*rows[-1], sep=", ", flush=True)
    plot = Plot(title="Beside files that are loaded already", across="files", up="ms", lines=lines)
    image = pages.image(
        "scaling-prefix", plot.svg(), "The cost of a look and of a batch, by the number of loaded files"
    )
    head = ("files in", "loaded already", "a look that finds nothing", "a batch of one new file")
    pages.show("scaling-prefix", f"{image}\n\n{markdown_table(head, sorted(rows, key=itemgetter(0)))}")


def _measure(open_place: Callable[[Path, int], Any], mark: int) -> tuple[float, float]:
    """Milliseconds of a look and of a batch, without Spark: medians."""
    folder = Path(tempfile.mkdtemp(prefix="lading-bench-", dir=FOLDER))
    try:
        with open_place(folder, mark) as (put, source), PretendLading(folder / "home") as lading:
            put(range(mark))
            lading.sql(
                f"{TABLE}; CREATE JOB j PROPERTIES ("
                '"s3.max_batch_files"="5000", "file.settle_seconds"="0") ON STREAMING DO '
                f"INSERT INTO t SELECT id, city FROM {source}"
            )
            lading.run()
            runner = lading.runner(lading.job("j").job_id)
            looks, batches = list[float](), list[float]()
            for number in range(LOOKS):
                looks.append(_look_ms(runner))
                put(range(mark + number, mark + number + 1))
                batches.append(_timed_ms(runner.run_once))
            totals = lading.job("j").totals
            if totals is None or totals.source_files != mark + LOOKS:
                raise RuntimeError(f"not everything was loaded: {totals}")
            return median(looks), median(batches)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _look_ms(runner: JobRunner) -> float:
    """A look as the scheduler has it. One that opens the job or writes a remark does not count."""
    for _ in range(5):
        began = time.perf_counter()
        if runner.is_idle():
            return (time.perf_counter() - began) * 1000
        runner.run_once()
    raise RuntimeError("the job does not come to rest")


def _timed_ms(what: Callable[[], object]) -> float:
    began = time.perf_counter()
    what()
    return (time.perf_counter() - began) * 1000


@contextmanager
def _on_disk(folder: Path, mark: int) -> Iterator[tuple[Put, str]]:
    inbox = folder / "in"
    inbox.mkdir()
    (folder / "one").write_text(BODY)

    def put(numbers: range) -> None:
        for number in numbers:
            # A file can have 65,000 names on some disks.
            if number % 10_000 == 0:
                (folder / "one").unlink()
                (folder / "one").write_text(BODY)
            os.link(folder / "one", inbox / f"{number:08}.csv")

    options = '"format"="csv_with_names", "column_separator"=","'
    yield put, f'FILE("uri"="{inbox}/*.csv", {options})'


def _in_bucket(server: S3Server) -> Callable[[Path, int], Any]:
    @contextmanager
    def opened(folder: Path, mark: int) -> Iterator[tuple[Put, str]]:
        bucket, access = server.make_bucket(), server.options
        keys = {"aws_access_key_id": access.access_key, "aws_secret_access_key": access.secret_key}
        client = boto3.client("s3", endpoint_url=server.endpoint, region_name="us-east-1", **keys)

        def put(numbers: range) -> None:
            def one(number: int) -> None:
                client.put_object(Bucket=bucket, Key=f"in/{number:08}.csv", Body=BODY.encode())

            with ThreadPoolExecutor(4) as pool:
                list(pool.map(one, numbers))

        yield (
            put,
            f'S3("uri"="s3://{bucket}/in/*.csv", "format"="csv_with_names", "column_separator"=",", '
            f'"s3.endpoint"="{server.endpoint}", "s3.region"="us-east-1", "use_path_style"="true", '
            f'"s3.access_key"="{access.access_key}", "s3.secret_key"="{access.secret_key}")',
        )

    return opened
