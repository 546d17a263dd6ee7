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

from pyiceberg.manifest import ManifestContent, ManifestFile
from pyiceberg.table.update.snapshot import _ManifestMergeManager, _MergeAppendFiles


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


def _tier(manifest: ManifestFile, base: int) -> int:
    """The order of magnitude of the number of files in a manifest."""
    files = (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)
    return int(math.log(max(files, 1), max(base, 2)))
