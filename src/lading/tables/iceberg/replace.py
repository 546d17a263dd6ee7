"""One snapshot of an Iceberg table that puts new files with the same rows in the place of old ones.

PyIceberg has no such operation. The new files keep the data sequence number of the last old one: a delete file that
comes later applies to them as it would have to the old ones, and rows still stand in the order of their commits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyiceberg.manifest import DataFile, ManifestContent, ManifestEntry, ManifestEntryStatus, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update import AssertTableUUID
from pyiceberg.table.update.snapshot import _SnapshotProducer
from pyiceberg.typedef import EMPTY_DICT

from lading.errors import LadingError
from lading.model.batch import StagedFile
from lading.model.outcome import Landed, NotLanded, Outcome, Unknown
from lading.tables.compaction.model import MARK, LiveFile
from lading.tables.iceberg.append import PreparedCommit, base_transaction
from lading.tables.iceberg.commit import Conflict, send, wait_s
from lading.tables.iceberg.ended import astray_jobs
from lading.tables.iceberg.errors import translated
from lading.tables.iceberg.handle import Handle
from lading.tables.iceberg.live import FORMAT_VERSION, files_with_deletes
from lading.tables.iceberg.moved import Place, check_not_moved
from lading.tables.iceberg.place import relative_path
from lading.tables.iceberg.stats import data_file, parse_stats
from lading.tables.maintenance import told_astray

MAX_ATTEMPTS = 20
"""Each writes manifests. A load that commits all the time is let go first."""

_Found = tuple[ManifestFile, list[ManifestEntry]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacing:
    """One attempt to replace files."""

    handle: Handle
    place: Place
    old: Sequence[LiveFile]
    new: Sequence[StagedFile]
    compaction_id: str
    check: Callable[[], None]
    """Right before every attempt."""

    def commit(self) -> Outcome:
        """Every attempt loads the table and looks for the old files again, and requires that nothing moved since."""
        lost: PreparedCommit | None = None
        why = ""
        for number in range(MAX_ATTEMPTS):
            if lost is not None:
                self.handle.clock.sleep(wait_s(number))
            try:
                table = self.handle.load()
            except LadingError as error:
                return NotLanded(why=error.what) if lost is None else Unknown(why=f"{why}; {error.what}")
            if lost is not None and lost.has_landed(table):
                return Landed(version=lost.sequence_number)
            if lost is not None:
                lost.delete_files()
            check_not_moved(table, self.place, self.handle.what)
            with translated(self.handle.what):
                prepared = self._prepared(table)
            if isinstance(prepared, NotLanded):
                return prepared
            try:
                self.check()
            except LadingError as error:
                prepared.delete_files()
                return NotLanded(why=error.what)
            answer = send(table, prepared)
            if not isinstance(answer, Conflict):
                return answer
            lost, why = prepared, answer.why
        return self._last_look(lost, why)

    def _last_look(self, lost: PreparedCommit | None, why: str) -> Outcome:
        try:
            table = self.handle.load()
        except LadingError as error:
            return Unknown(why=f"{why}; {error.what}")
        if lost is not None and lost.has_landed(table):
            return Landed(version=lost.sequence_number)
        if lost is not None:
            lost.delete_files()
        return NotLanded(why=f"{MAX_ATTEMPTS} attempts were refused; the last one: {why}")

    def _prepared(self, table: Table) -> PreparedCommit | NotLanded:
        metadata = table.metadata
        if astray := astray_jobs(self.handle, table):
            return NotLanded(why=told_astray(astray))
        if metadata.format_version != FORMAT_VERSION:
            return NotLanded(why="the table has got another format version meanwhile")
        wanted = {file.path for file in self.old}
        found = _entries(table, self.place.location, wanted)
        entries = {relative_path(self.place.location, e.data_file.file_path): e for _, some in found for e in some}
        if missing := wanted - entries.keys():
            return NotLanded(why=f"another writer took {min(missing)} out meanwhile")
        deleted = files_with_deletes(table)
        if deleted is None or deleted & {entry.data_file.file_path for entry in entries.values()}:
            return NotLanded(why="another writer deleted rows of one of the files meanwhile")
        if {manifest.partition_spec_id for manifest, _ in found} != {metadata.default_spec_id}:
            return NotLanded(why="the table has got another partitioning meanwhile")
        last = entries[self.old[-1].path]
        added = [_new_file(table, file, last) for file in self.new]
        producer = ReplaceFiles(
            Operation.REPLACE, base_transaction(table), table.io, snapshot_properties={MARK: self.compaction_id}
        )
        producer.choose(found, added, last.sequence_number or 0)
        try:
            updates, requirements = producer._commit()  # noqa: SLF001 - as for loads
        except Exception:
            producer._clean_all_uncommitted()  # noqa: SLF001
            raise
        return PreparedCommit(
            updates=updates,
            requirements=(*requirements, AssertTableUUID(uuid=metadata.table_uuid)),
            sequence_number=metadata.next_sequence_number(),
            producer=producer,
        )


def _new_file(table: Table, file: StagedFile, last: ManifestEntry) -> DataFile:
    metadata = table.metadata
    partition = last.data_file.partition
    return data_file(file, parse_stats(file), metadata.spec(), metadata.schema(), partition=partition)


def _entries(table: Table, location: str, wanted: set[str]) -> list[_Found]:
    """The manifests of the current snapshot that name a wanted file, and those entries."""
    snapshot = table.metadata.current_snapshot()
    found: list[_Found] = []
    for manifest in snapshot.manifests(table.io) if snapshot else []:
        if manifest.content != ManifestContent.DATA:
            continue
        entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
        named = [entry for entry in entries if relative_path(location, entry.data_file.file_path) in wanted]
        if named:
            found.append((manifest, named))
    return found


class ReplaceFiles(_SnapshotProducer["ReplaceFiles"]):
    """A semi-private class of PyIceberg 0.12: `_manifests` writes what the snapshot names."""

    def choose(self, found: Sequence[_Found], added: Sequence[DataFile], sequence_number: int) -> None:
        """Which entries go, and which files come with the sequence number of the last one."""
        self._found = {manifest.manifest_path: entries for manifest, entries in found}
        self._sequence_number = sequence_number
        for file in added:
            self.append_data_file(file)
        for _, entries in found:
            for entry in entries:
                self.delete_data_file(entry.data_file)

    def _manifests(self) -> list[ManifestFile]:
        spec = self._transaction.table_metadata.spec()
        with self.new_manifest_writer(spec) as added:
            for file in self._added_data_files:
                added.add_entry(self._entry(ManifestEntryStatus.ADDED, self._snapshot_id, file, self._sequence_number))
        with self.new_manifest_writer(spec) as gone:
            for entries in self._found.values():
                for entry in entries:
                    gone.delete(entry)
        return [added.to_manifest_file(), gone.to_manifest_file(), *self._existing_manifests()]

    def _existing_manifests(self) -> list[ManifestFile]:
        """All others as they are; those that named an old file are written again without it, in the same order."""
        parent = self._transaction.table_metadata.snapshot_by_id(self._parent_snapshot_id or 0)
        kept: list[ManifestFile] = []
        for manifest in parent.manifests(self._io) if parent else []:
            if manifest.manifest_path not in self._found:
                if manifest.has_added_files() or manifest.has_existing_files():
                    kept.append(manifest)
                continue
            gone = {entry.data_file.file_path for entry in self._found[manifest.manifest_path]}
            entries = manifest.fetch_manifest_entry(self._io, discard_deleted=True)
            left = [entry for entry in entries if entry.data_file.file_path not in gone]
            if left:
                with self.new_manifest_writer(self.spec(manifest.partition_spec_id)) as writer:
                    for entry in left:
                        writer.existing(entry)
                kept.append(writer.to_manifest_file())
        return kept

    def _deleted_entries(self) -> list[ManifestEntry]:
        return [entry for entries in self._found.values() for entry in entries]

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        # PyIceberg adds up the totals of a replacement as of an overwrite, and refuses its name.
        self._operation = Operation.OVERWRITE
        made: Summary = super()._summary(snapshot_properties)
        return Summary(operation=Operation.REPLACE, **_said(made))

    @staticmethod
    def _entry(status: ManifestEntryStatus, snapshot_id: int, file: DataFile, number: int) -> ManifestEntry:
        return ManifestEntry.from_args(
            status=status, snapshot_id=snapshot_id, sequence_number=number, file_sequence_number=None, data_file=file
        )


def _said(summary: Summary) -> Mapping[str, Any]:
    return dict(summary.additional_properties)
