"""The in-memory table, put through the contract."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from lading.ids import JobId
from lading.model.batch import StagedFile
from lading.model.bill import Bill, Head
from lading.model.outcome import NotLanded, Outcome, Unknown
from lading.model.table import TableSpec
from lading.tables.maintenance import CarePolicy, CareReport
from lading.tables.memory import MemoryBills, MemoryTable
from tests.tables.rig import FileStatistics, RigTable
from tests.tables.s3_server import S3Server


@dataclass(slots=True, kw_only=True)
class _Shared:
    table: MemoryTable = field(default_factory=MemoryTable)
    bills: MemoryBills = field(init=False)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.bills = MemoryBills(self.table)


class MemoryHandle(MemoryTable):
    """One of several handles on a table in memory. Can lose one answer, or refuse one commit."""

    def __init__(self, shared: _Shared) -> None:
        super().__init__()
        self.versions = shared.table.versions
        self._stored = shared.table._stored
        self.fault: str = ""
        self._shared = shared

    @property
    def bills(self) -> MemoryBills:
        return self._shared.bills

    def commit(self, expected: Head | None, staged: Sequence[StagedFile], bill: Bill) -> Outcome:
        fault, self.fault = self.fault, ""
        if fault == "fail":
            return NotLanded(why="the commit was made to fail")
        with self._shared.lock:
            outcome = super().commit(expected, staged, bill)
        return Unknown(why="the answer was lost") if fault == "lose" else outcome


class MemoryRig:
    """Tables in this process."""

    name = "memory"
    race_rounds = 200
    keeps_files = False

    def __init__(self) -> None:
        self._tables: dict[str, _Shared] = {}
        self._paths = iter(range(1_000_000))

    def create(self, name: str, spec: TableSpec) -> RigTable:
        self._tables[name] = _Shared()
        return self.reopen(name)

    def reopen(self, name: str) -> RigTable:
        return MemoryHandle(self._tables[name])

    def append_unrelated(self, name: str, rows: pa.Table) -> None:
        self._tables[name].table.append_unrelated(f"stranger-{next(self._paths)}", rows.to_pylist())

    def others_maintain(self, name: str) -> None:
        """There is nothing to maintain."""

    def remove_orphans(self, name: str) -> int:
        return len(self._tables[name].bills.clean())

    def restore_older(self, name: str, versions_back: int) -> None:
        table = self._tables[name].table
        table.restore(len(table.versions) - 1 - versions_back)

    def versions(self, name: str) -> list[int]:
        return list(range(len(self._tables[name].table.versions)))

    def change_schema(self, name: str) -> None:
        """There is no schema."""

    def stage(self, table: RigTable, rows: pa.Table, attempt: str) -> tuple[StagedFile, ...]:
        path = f"{attempt}-{next(self._paths)}"
        cast("MemoryHandle", table).write_file(path, rows.to_pylist())
        return (StagedFile(path=path, rows=rows.num_rows, size_bytes=rows.nbytes),)

    def exists(self, table: RigTable, file: StagedFile) -> bool:
        return cast("MemoryHandle", table).file_rows(file.path) is not None

    @contextmanager
    def lose_answer_once(self, table: RigTable) -> Iterator[None]:
        cast("MemoryHandle", table).fault = "lose"
        yield

    @contextmanager
    def fail_once(self, table: RigTable) -> Iterator[None]:
        cast("MemoryHandle", table).fault = "fail"
        yield

    def rows(self, table: RigTable) -> list[dict[str, Any]]:
        return cast("MemoryHandle", table).rows()

    def statistics(self, table: RigTable) -> Sequence[FileStatistics]:
        return ()

    def look_after(self, table: RigTable, job_id: JobId, policy: CarePolicy, now: datetime) -> CareReport:
        return CareReport()


def memory(_tmp_path: Path, _s3: S3Server | None) -> MemoryRig:
    return MemoryRig()


MEMORY_RIGS = [memory]
