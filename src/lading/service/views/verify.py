"""A job's bills against its table: is every row that the bills account for there, once, and do the counts agree?

Rows that others took out on purpose are not lost. The history of the table tells who removed a file: one that nobody
removed is LOSS when the history is complete, or goes back to before the file was committed. When it does not, it cannot
be told, and that is said. A file that the table names and that is not there, or is short, is LOSS whatever the history
says.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from lading.errors import HeadLostError, JobStateError
from lading.jobs.record import JobRecord
from lading.model.batch import StagedFile
from lading.model.bill import Bill
from lading.model.manifests import parse_manifest
from lading.model.s3_access import S3Access
from lading.model.state import StateRef
from lading.model.tally import Tally
from lading.service.views.compacted import follow_compactions
from lading.storage.store import open_store
from lading.tables.base import LakeTable, Removals


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was found."""

    job: str
    bills: int
    rows: int
    """Rows that the bills say were loaded."""
    findings: tuple[str, ...] = ()
    """Each begins with its class: LOSS, DUP, CORRUPT or PROGRESS-MISMATCH."""
    removed: Mapping[str, int] = field(default_factory=dict)
    """Rows that others took out on purpose, by what they did."""
    rewritten: Mapping[str, int] = field(default_factory=dict)
    """Rows that others wrote into other files, which the bills do not know: those are not looked at."""

    untold: int = 0
    """Rows of files that are gone, of which the history of the table no longer says who removed them."""
    hidden: int = 0
    """Rows of the whole table that others took out without writing files again: by delete files or deletion vectors."""

    @property
    def is_clean(self) -> bool:
        """Nothing is wrong."""
        return not self.findings

    @property
    def told(self) -> str:
        """A verdict without findings, in words: clean, or what others did to the rows."""
        parts = []
        if self.removed:
            parts.append(f"others removed {_listed(self.removed)}")
        if self.rewritten:
            parts.append(f"others rewrote {_listed(self.rewritten)}, whose new files were not looked at")
        if self.hidden:
            parts.append(f"delete files of others hide {self.hidden:,} rows of the table")
        if self.untold:
            parts.append(
                f"cannot be told of {self.untold:,} rows: their files are gone, and the table's history is not kept "
                "long enough to say who removed or rewrote them"
            )
        if self.untold:
            return "; ".join(parts)
        return f"nothing lost by Lading; {'; '.join(parts)}" if parts else "clean"


def verify_job(record: JobRecord, table: LakeTable) -> Verdict:
    """Read the lineage of a job and compare it with the table."""
    head = table.read_head(record.job_id)
    if head is None:
        msg = f"Job {record.name} has no head in {record.target}"
        raise JobStateError(msg, left="Nothing was changed.", todo="Run the job first.")
    bills = [table.bills.read(record.job_id, head)]
    # Behind a bill whose history other engines removed nothing can be added up.
    while (old := bills[-1].continues) is not None and not bills[-1].is_without_history:
        try:
            bills.append(table.bills.read(record.job_id, old))
        except HeadLostError:
            break  # Older than the retention: the totals of the oldest bill left stand for them.
    lineage = bills[::-1]
    named = [file for bill in lineage for file in bill.files]
    there = Counter(table.files())
    followed = follow_compactions(named, there, table)
    named = list(followed.files)
    gone = {file.path: file for file in named if file.path not in there}
    removals = table.removals(set(gone))
    missing = [file for path, file in gone.items() if path not in removals.found]
    lost = missing if removals.is_complete else _committed_since(missing, lineage, removals.complete_since)
    findings = [*_totals(lineage), *_doubles(named, there), *_content(named, there, table), *followed.findings]
    if lost:
        findings.append(_loss(lost))
    if record.job_id not in table.ended_jobs():  # What a dropped job kept goes by and by.
        findings += _state(lineage[-1].state, table)
    return Verdict(
        job=record.name,
        bills=len(lineage),
        rows=lineage[-1].totals.written,
        findings=tuple(findings),
        removed=_taken(gone, removals, is_rewrite=False),
        rewritten=_taken(gone, removals, is_rewrite=True),
        untold=sum(file.rows for file in missing) - sum(file.rows for file in lost),
        hidden=removals.hidden_rows,
    )


def _committed_since(missing: list[StagedFile], lineage: list[Bill], version: int | None) -> list[StagedFile]:
    """Those that came into the table after a version. Of files that compaction wrote no bill tells it."""
    if version is None:
        return []
    on = {file.path: bill.table_version for bill in lineage for file in bill.files}
    return [file for file in missing if (at := on.get(file.path)) is not None and at >= version]


def _totals(lineage: list[Bill]) -> list[str]:
    running: Tally = lineage[0].totals - lineage[0].added
    found = []
    for bill in lineage:
        running += bill.added
        if running != bill.totals:
            found.append(f"PROGRESS-MISMATCH: the totals of seq {bill.seq} are not the sum of the bills before it")
            running = bill.totals
    return found


def _doubles(named: list[StagedFile], there: Counter[str]) -> list[str]:
    by_bills = Counter(file.path for file in named)
    found = [f"DUP: {path} is named by {count} bills" for path, count in by_bills.items() if count > 1]
    return found + [f"DUP: {path} is {count} times in the table" for path, count in there.items() if count > 1]


def _loss(missing: Sequence[StagedFile]) -> str:
    """Files that nobody took out."""
    rows = sum(file.rows for file in missing)
    what = f"{len(missing)} files with {rows:,} rows that the bills name are not in the table"
    return f"LOSS: {what}, and no commit of its history removed them"


def _listed(rows: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} rows ({by})" for by, count in rows.items())


def _taken(gone: Mapping[str, StagedFile], removals: Removals, *, is_rewrite: bool) -> dict[str, int]:
    rows: Counter[str] = Counter()
    for path, file in gone.items():
        removal = removals.found.get(path)
        if removal is not None and removal.is_rewrite == is_rewrite:
            rows[removal.by] += file.rows
    return dict(rows)


def _content(named: list[StagedFile], there: Counter[str], table: LakeTable) -> list[str]:
    """Files that the table names: those of others must be there, those of the job have the rows of their bill."""
    options = table.writer_spec().options
    filesystem, root = open_store(table.location, options).arrow()
    rows_of = {file.path: file.rows for file in named}
    found = []
    for path in sorted(there):
        # Engines may keep files elsewhere; such paths are whole.
        files, full = (filesystem, f"{root}/{path}") if "://" not in path else _elsewhere(path, options)
        if not files.get_file_info(full).is_file:
            whose = f"with {rows_of[path]:,} rows of the job " if path in rows_of else ""
            found.append(f"LOSS: the table names {path} {whose}and it is not there")
        elif path in rows_of and (rows := _rows(files, full)) != rows_of[path]:
            found.append(f"CORRUPT: {path} holds {rows} rows, its bill says {rows_of[path]}")
    return found


def _elsewhere(path: str, options: S3Access) -> tuple[pafs.FileSystem, str]:
    folder, _, name = path.rpartition("/")
    filesystem, root = open_store(folder, options).arrow()
    return filesystem, f"{root}/{name}"


def _rows(filesystem: pafs.FileSystem, path: str) -> int | str:
    try:
        return int(pq.read_metadata(path, filesystem=filesystem).num_rows)
    except (pa.ArrowInvalid, OSError) as error:
        return f"no readable ({error})"


def _state(state: StateRef | None, table: LakeTable) -> list[str]:
    """What the job keeps between batches: every file that the newest bill stands for, whole."""
    if state is None:
        return []
    objects = open_store(table.location, table.writer_spec().options)
    content = objects.get(state.manifest)
    if (fault := _fault(content, state.digest)) or content is None:
        return [f"CORRUPT: the manifest of the state, {state.manifest}, {fault}"]
    found, rows = [], 0
    for file in parse_manifest(content, where=state.manifest).files:
        rows += file.rows
        if fault := _fault(objects.get(file.path), file.digest):
            found.append(f"CORRUPT: the state file {file.path} {fault}")
    if rows != state.rows:
        found.append(f"CORRUPT: the manifest of the state has {rows} rows, its bill says {state.rows}")
    return found


def _fault(content: bytes | None, digest: str) -> str:
    if content is None:
        return "is gone"
    return "" if hashlib.sha256(content).hexdigest() == digest else "is not what was written"
