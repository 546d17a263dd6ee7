"""A loader process that a test can kill many times in a minute: one stream into one table, without Spark.

The process that a test starts imports everything once and then forks for every incarnation: the child reads, writes
and commits with the real source, the real writer and the real coordinator, and SIGKILL ends it wherever it is. What
the next one knows is what the table says.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import pyarrow as pa

from lading.clock import SystemClock
from lading.commit.coordinator import Coordinator
from lading.commit.ports import CoordinatorPorts
from lading.commit.steps import run_steps
from lading.errors import StageError
from lading.failpoints import arm_from_text, failpoint
from lading.ids import Incarnation, JobId, new_incarnation, new_token
from lading.model.batch import BatchPlan, Limits, Report, Split
from lading.model.job import Job
from lading.model.row_formats import CsvOptions
from lading.model.rows import ERROR, SplitEnd
from lading.model.table import Column, TableSpec
from lading.model.tally import RowCounts
from lading.plan.planner import Planner
from lading.sources.files.packing import SplitSizing
from lading.sources.files.reader import read_splits as read_files
from lading.sources.files.source import FilesSource
from lading.sources.files.spec import FilesSpec, Format, Place
from lading.sources.kafka.reader import read_splits as read_kafka
from lading.sources.kafka.source import KafkaSource
from lading.sources.kafka.spec import KafkaSpec
from lading.sources.kinesis.reader import read_splits as read_kinesis
from lading.sources.kinesis.source import KinesisSource
from lading.sources.kinesis.spec import Credentials, KinesisSpec, Pace
from lading.sources.records.spec import RecordFormat, RecordKind
from lading.tables.base import LakeTable
from lading.tables.kind import TablePlace
from lading.tables.registry import kind_of, open_writer
from lading.testing.marked import secret

JOB = JobId("57eea000-0000-4000-8000-000000000003")
MIDDLE = "stage.middle"
"""A failpoint of its own: rows of a split were written, the rest was not."""
_STOP, _LONGEST_S, _PAUSE_S = "stop", 600.0, 0.02
_SPEC = TableSpec(
    columns=(
        Column(name="k", type="string"),
        Column(name="n", type="bigint"),
        Column(name="place", type="string"),
        Column(name="number", type="string"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamJob:
    """What is loaded, and where to."""

    home: str
    form: str
    """The table format."""
    source: str
    """kinesis, kafka or files."""
    address: str
    """Endpoint or bootstrap servers."""
    stream: str
    """The stream, the topic, or the pattern of the files, which hold the columns of the table."""
    start: str
    rows: int = 1_000
    """The most of one batch."""
    size_bytes: int = 1_000_000_000
    """The most of one batch, too."""
    max_records: int = 10_000
    """The most of one answer of Kinesis."""
    files: int = 4
    """The most of one batch of files."""

    def create_table(self) -> LakeTable:
        kind_of(self.form).create(self._place, _SPEC)
        return self.open_table()

    def open_table(self) -> LakeTable:
        return kind_of(self.form).open(self._place)

    @property
    def _place(self) -> TablePlace:
        home = Path(self.home)
        return TablePlace(home=home, name="shop.events", location=str(home / "warehouse" / "events"))


class StreamLoader:
    """The test's side: starts incarnations of a loader, one at a time."""

    def __init__(self, job: StreamJob) -> None:
        self._job = job
        self._stop = stop_file(job)
        self._pid = 0
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "tests.support.stream_worker", json.dumps(asdict(self._job))]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._pid:
            self.kill()
        self._pipe("stdin").close()
        self._pipe("stdout").close()
        if self._process is not None:
            self._process.wait(10)

    def start(self, failpoints: str = "") -> None:
        """Let one go. It loads what comes until it is killed or told to stop."""
        self._stop.unlink(missing_ok=True)
        self._pipe("stdin").write(f"{failpoints}\n")
        self._pipe("stdin").flush()
        self._pid = int(self._pipe("stdout").readline())

    def finish(self) -> int:
        """Let it load what is there and end. How it ended: 0, or minus the signal."""
        self._stop.touch()
        self._pid, code = 0, int(self._pipe("stdout").readline())
        return code

    def run(self, failpoints: str = "") -> int:
        """Load what is there."""
        self.start(failpoints)
        return self.finish()

    def kill(self) -> int:
        """SIGKILL, wherever it is."""
        os.kill(self._pid, signal.SIGKILL)
        return self.finish()

    def _pipe(self, name: str) -> IO[str]:
        pipe: IO[str] = getattr(self._process, name)
        return pipe


Spec = KinesisSpec | KafkaSpec | FilesSpec


class StreamStager:
    """Reads and writes in this process, one split after the other. A bad row is not expected."""

    def __init__(self, job: StreamJob, spec: Spec, table: LakeTable, incarnation: Incarnation):
        self._job, self._spec = job, spec
        self._writing = table.writer_spec()
        self._incarnation = incarnation
        self._attempts = 0

    def stage(self, plan: BatchPlan) -> Sequence[Report]:
        splits = sorted(plan.splits, key=lambda split: split.number)
        items: Iterator[Any]
        if isinstance(self._spec, KinesisSpec):
            items = read_kinesis(self._spec, splits)
        elif isinstance(self._spec, FilesSpec):
            items = read_files(self._spec, splits)
        else:
            items = read_kafka(self._spec, splits)
        return [self._report(split, items) for split in splits]

    def _report(self, split: Split, items: Iterator[Any]) -> Report:
        self._attempts += 1
        writer, loaded = open_writer(self._writing, f"{self._incarnation}-{self._attempts}"), 0
        for item in items:
            if isinstance(item, SplitEnd):
                return _told(split, item, loaded, writer.close())
            writer.write(_mapped(item, self._writing.schema))
            loaded += item.num_rows
            failpoint(MIDDLE)
        msg = f"Split {split.number} has no end"
        raise StageError(msg, left="Nothing was committed.")


def _mapped(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    if batch.column(ERROR).null_count < batch.num_rows:
        msg = f"A bad row: {[error for error in batch.column(ERROR).to_pylist() if error][:1]}"
        raise StageError(msg, left="Nothing was committed.")
    columns = [batch.column(place).cast(field.type) for place, field in enumerate(schema)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _told(split: Split, end: SplitEnd, loaded: int, files: Any) -> Report:
    if end.rows != loaded:
        msg = f"Split {split.number} read {end.rows} rows, and {loaded} came to the writer"
        raise StageError(msg, left="Nothing was committed.")
    return Report(
        split=split.number,
        partition=split.partition,
        start=split.start,
        end=end.end,
        finished=end.finished,
        files=files,
        rows=RowCounts(total=loaded + end.skipped, loaded=loaded, unselected=end.skipped),
        received_bytes=end.received_bytes,
        source_files=end.source_files,
        marks=end.marks,
        lag_ms=end.lag_ms,
    )


def _kinesis(job: StreamJob) -> KinesisSpec:
    return KinesisSpec(
        stream=job.stream,
        region="us-east-1",
        endpoint=job.address,
        credentials=Credentials(access_key=secret("kinesis"), secret_key=secret("kinesis")),
        format=RecordFormat(kind=RecordKind.JSON, columns=("key", "n")),
        meta=("_shard", "_sequence"),
        max_records=job.max_records,
        pace=Pace(calls_per_s=1e6, bytes_per_s=1e12),
    )


def _kafka(job: StreamJob) -> KafkaSpec:
    return KafkaSpec(
        brokers=job.address,
        topic=job.stream,
        format=RecordFormat(kind=RecordKind.JSON, columns=("k", "n")),
        metadata=("_partition", "_offset"),
    )


def _files(job: StreamJob) -> FilesSpec:
    return FilesSpec(
        place=Place(scheme="file", bucket="", pattern=job.stream),
        format=Format.CSV_WITH_NAMES,
        csv=CsvOptions(column_separator=","),
        schema=pa.schema([(column.name, pa.string()) for column in _SPEC.columns]),
    )


def _open(job: StreamJob, clock: SystemClock) -> tuple[Spec, KinesisSource | KafkaSource | FilesSource]:
    if job.source == "kinesis":
        return (stream := _kinesis(job)), KinesisSource(stream, clock)
    if job.source == "kafka":
        return (topic := _kafka(job)), KafkaSource(topic, clock)
    # Files are small, and each is worth a split.
    return (files := _files(job)), FilesSource(files, sizing=SplitSizing(smallest_bytes=1), clock=clock)


def make_coordinator(job: StreamJob) -> Coordinator:
    """What an incarnation of the loader works with."""
    clock, table, incarnation = SystemClock(), job.open_table(), new_incarnation()
    spec, source = _open(job, clock)
    world = CoordinatorPorts(
        table=table,
        bills=table.bills,
        planner=Planner(source, clock),
        stager=StreamStager(job, spec, table, incarnation),
        clock=clock,
        new_token=new_token,
    )
    limits = Limits(rows=job.rows, size_bytes=job.size_bytes, seconds=20.0, files=job.files)
    return Coordinator(Job(job_id=JOB, name="events", start=job.start, limits=limits), world, incarnation)


def load(job: StreamJob) -> None:
    """Load what comes until told to stop, and then what is there."""
    coordinator = make_coordinator(job)
    run_steps(coordinator.start())
    load_on(job, coordinator)


def load_on(job: StreamJob, coordinator: Coordinator) -> None:
    """The same, by an incarnation that has started."""
    clock = SystemClock()
    stop, end_s = stop_file(job), clock.monotonic_s() + _LONGEST_S
    while clock.monotonic_s() < end_s:
        is_last = stop.exists()
        if run_steps(coordinator.run_batch()) is None:
            if is_last:
                return
            clock.sleep(_PAUSE_S)
    msg = "Nobody told the loader to stop"
    raise TimeoutError(msg)


def stop_file(job: StreamJob) -> Path:
    """Once it is there, the loader loads what is there and ends."""
    return Path(job.home) / _STOP


def _serve(job: StreamJob) -> None:
    """Fork for each line; answer with the process and then with how it ended."""
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            os._exit(_incarnation(job, line.strip()))
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def _incarnation(job: StreamJob, failpoints: str) -> int:
    try:
        arm_from_text(failpoints)
        load(job)
    except BaseException:  # noqa: BLE001 - the end of a process that has no other way to say it
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    _serve(StreamJob(**json.loads(sys.argv[1])))
