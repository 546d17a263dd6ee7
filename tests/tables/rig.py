"""What the contract suite needs of a table format to put it through the same tests as the others.

A rig owns a place where tables with names live. A factory makes one per test:
`(tmp_path: Path, s3: S3Server | None) -> Rig`. The name of the factory is the name in the test's id; a factory whose
name contains `s3` is given the server, the others are given None.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from lading.commit.protocols import Bills, Table
from lading.ids import JobId
from lading.model.batch import StagedFile
from lading.model.bill import Head
from lading.model.table import TableSpec
from lading.tables.maintenance import CarePolicy, CareReport
from tests.tables.s3_server import S3Server

RACE_ROUNDS = int(os.environ.get("LADING_TEST_RACE_ROUNDS", "0"))
"""Rounds of eight threads; the long proofs set 200, the quick tests leave it to the rig."""


class RigTable(Table, Protocol):
    """A table under test: what the coordinator needs, and its bills. Lake tables and the in-memory one have both."""

    @property
    def bills(self) -> Bills: ...

    def ends_with(self, job_id: JobId) -> Head | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStatistics:
    """What the table says about one of its files, read back through the format's own library.

    Values are Python objects of the column's type (date, datetime with UTC or naive, Decimal, str, int, float).
    A column is left out of `lows`, `highs` or `nulls` when the table says nothing about it.
    """

    path: str
    """As in StagedFile."""
    rows: int
    lows: Mapping[str, Any]
    highs: Mapping[str, Any]
    nulls: Mapping[str, int]


class Rig(Protocol):
    """One table format on one kind of storage."""

    name: str
    race_rounds: int
    """How many rounds of eight threads this rig can afford."""
    keeps_files: bool
    """Whether tables are LakeTables with real files: False only for the in-memory one."""

    def create(self, name: str, spec: TableSpec) -> RigTable:
        """Make a table and open it."""
        ...

    def reopen(self, name: str) -> RigTable:
        """A second handle that shares nothing with the first but the table."""
        ...

    def append_unrelated(self, name: str, rows: pa.Table) -> None:
        """Append by the format's plain library, as a stranger would."""
        ...

    def others_maintain(self, name: str) -> None:
        """Everything a stranger's maintenance does: checkpoints, log cleanup, compaction, expiry, vacuum."""
        ...

    def remove_orphans(self, name: str) -> int:
        """Another engine deletes every file under the table that the table format does not know; how many."""
        ...

    def restore_older(self, name: str, versions_back: int) -> None:
        """A stranger puts the table back by that many versions with the format's own command."""
        ...

    def versions(self, name: str) -> list[int]:
        """Versions or snapshots that can still be read, by the plain library, oldest first."""
        ...

    def change_schema(self, name: str) -> None:
        """A stranger changes the type of the table's first column so that files staged before no longer fit."""
        ...

    def stage(self, table: RigTable, rows: pa.Table, attempt: str) -> tuple[StagedFile, ...]:
        """Stage rows with the real writer."""
        ...

    def exists(self, table: RigTable, file: StagedFile) -> bool:
        """Whether a staged file is there."""
        ...

    def lose_answer_once(self, table: RigTable) -> AbstractContextManager[None]:
        """Within it, the next commit of this handle is applied, but its answer is lost."""
        ...

    def fail_once(self, table: RigTable) -> AbstractContextManager[None]:
        """Within it, the next commit of this handle fails for certain."""
        ...

    def rows(self, table: RigTable) -> list[dict[str, Any]]:
        """All rows of the table now, in any order."""
        ...

    def statistics(self, table: RigTable) -> Sequence[FileStatistics]:
        """Statistics of all files of the table; empty when the format has none."""
        ...

    def look_after(self, table: RigTable, job_id: JobId, policy: CarePolicy, now: datetime) -> CareReport:
        """One round of the table's own care."""
        ...


RigFactory = Callable[[Path, S3Server | None], Rig]
