"""Keeping the number of manifests small at a bounded price.

PyIceberg's own merging packs everything into manifests of a target size and rewrites the newest of them again and
again while it grows; near the target it did so at every commit (400 ms each with 2,000 files). Here manifests are
merged only with others of their own order of magnitude: fifty with up to 49 files become one, fifty of those become
one, and so on up to the target size. Every file's entry is rewritten once per order of magnitude, and there are never
more than fifty manifests of each.
"""

from __future__ import annotations

import math
from collections import defaultdict

from pyiceberg.manifest import ManifestContent, ManifestEntry, ManifestFile, ManifestWriter
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertRefSnapshotId,
    SetSnapshotRefUpdate,
    UpdatesAndRequirements,
)
from pyiceberg.table.update.snapshot import (
    _ManifestMergeManager,
    _MergeAppendFiles,
    _new_manifest_list_file_name,
)

from lading.tables.iceberg.lineage import (
    LineageListWriter,
    LineageManifestWriter,
    next_row_id,
    read_entries,
    read_manifests,
)


class TieredAppend(_MergeAppendFiles):
    """PyIceberg's append, with another choice of which manifests are merged.

    Semi-private classes of PyIceberg 0.12: `_process_manifests` is its hook for this, `_create_manifest` rewrites.
    """

    def _process_manifests(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        if not self._merge_enabled:
            return manifests
        manager = _ManifestMergeManager(self._target_size_bytes, self._min_count_to_merge, True, self)
        for spec_id, group in self._due(manifests):
            merged = manager._create_manifest(spec_id, group)  # noqa: SLF001 - see above
            gone = {manifest.manifest_path for manifest in group}
            manifests = [*(kept for kept in manifests if kept.manifest_path not in gone), merged]
        return manifests

    def _due(self, manifests: list[ManifestFile]) -> list[tuple[int, list[ManifestFile]]]:
        tiers: dict[int, list[ManifestFile]] = defaultdict(list)
        # Only those of the current partitioning: a manifest is written with the current schema, which may no longer
        # have the columns that an older partitioning was made of. Those grow no more, so they cost no more.
        spec_id = self._transaction.table_metadata.default_spec_id
        # Oldest first; the manifest of this commit itself is left for a later one, and so are delete manifests.
        for manifest in sorted(manifests, key=lambda manifest: manifest.sequence_number or 0):
            is_own = manifest.added_snapshot_id == self._snapshot_id
            if manifest.content == ManifestContent.DATA and manifest.partition_spec_id == spec_id and not is_own:
                tiers[_tier(manifest, self._min_count_to_merge)].append(manifest)
        due = [(spec_id, self._affordable(found)) for found in tiers.values()]
        return [(spec_id, group) for spec_id, group in due if len(group) > 1]

    def _affordable(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        if len(manifests) < self._min_count_to_merge:
            return []
        group: list[ManifestFile] = []
        size = 0
        for manifest in manifests:
            size += manifest.manifest_length
            if size > self._target_size_bytes:
                break
            group.append(manifest)
        return group


class LineageAppend(TieredAppend):
    """The same for format version 3, whose rows have ids."""

    def _existing_manifests(self) -> list[ManifestFile]:
        metadata = self._transaction.table_metadata
        parent = metadata.snapshot_by_id(self._parent_snapshot_id) if self._parent_snapshot_id is not None else None
        if parent is None:
            return []
        found = read_manifests(self._io, parent.manifest_list)
        return [manifest for manifest in found if manifest.has_added_files() or manifest.has_existing_files()]

    def new_manifest_writer(self, spec: PartitionSpec) -> ManifestWriter:
        return LineageManifestWriter(
            spec, self.schema(), self.new_manifest_output(), self._snapshot_id, self._compression
        )

    def fetch_manifest_entry(self, manifest: ManifestFile, discard_deleted: bool = True) -> list[ManifestEntry]:
        del discard_deleted  # What was deleted is left out by who merges.
        return list(read_entries(self._io, manifest))

    def _commit(self) -> UpdatesAndRequirements:
        """As PyIceberg's; the row ids that the list has given out are said in the snapshot."""
        manifests, metadata = self._manifests(), self._transaction.table_metadata
        number, first = metadata.next_sequence_number(), next_row_id(metadata)
        name = _new_manifest_list_file_name(snapshot_id=self._snapshot_id, attempt=0, commit_uuid=self.commit_uuid)
        path = self._transaction._table.location_provider().new_metadata_location(name)  # noqa: SLF001
        self._written_manifest_lists.append(path)
        output, parent = self._io.new_output(path), self._parent_snapshot_id
        with LineageListWriter(output, self._snapshot_id, parent, number, self._compression, first) as writer:
            writer.add_manifests(manifests)
        body = {
            "snapshot-id": self._snapshot_id,
            "parent-snapshot-id": parent,
            "manifest-list": path,
            "sequence-number": number,
            "summary": self._summary(self.snapshot_properties),
            "schema-id": metadata.current_schema_id,
            "first-row-id": first,
            "added-rows": writer.next_row_id - first,
        }
        snapshot = Snapshot.model_validate(body)
        move = {"ref-name": MAIN_BRANCH, "type": SnapshotRefType.BRANCH, "snapshot-id": self._snapshot_id}
        at = metadata.refs.get(MAIN_BRANCH)
        unmoved = {"ref": MAIN_BRANCH, "snapshot-id": at.snapshot_id if at is not None else None}
        updates = (AddSnapshotUpdate(snapshot=snapshot), SetSnapshotRefUpdate.model_validate(move))
        return updates, (AssertRefSnapshotId.model_validate(unmoved),)


def _tier(manifest: ManifestFile, base: int) -> int:
    """The order of magnitude of the number of files in a manifest."""
    files = (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)
    return int(math.log(max(files, 1), max(base, 2)))
