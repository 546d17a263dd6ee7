"""Where the rows of a bill are after compactions: in the files that took the place of its own.

Notes beside the table tell what was put in the place of what. A note alone proves nothing: its compaction landed when
the table has its files, or had them until somebody removed them, or another compaction replaced them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from lading.model.batch import StagedFile
from lading.tables.base import LakeTable
from lading.tables.compaction.model import CompactionNote
from lading.tables.compaction.notes import read_notes


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """The files that have the rows now."""

    files: Sequence[StagedFile]
    """Those of bills that no compaction replaced, and those that took the place of the others."""
    findings: tuple[str, ...] = ()


def follow_compactions(named: Sequence[StagedFile], there: Collection[str], table: LakeTable) -> Followed:
    """Go from the files that bills name to those that have their rows."""
    if all(file.path in there for file in named):
        return Followed(files=named)
    notes = _Notes(read_notes(table.bills.storage), there, table)
    files: list[StagedFile] = []
    findings: list[str] = []
    seen: set[str] = set()
    waiting = list(named)
    for file in waiting:
        note = None if file.path in there else notes.replacing(file.path)
        if note is None:
            files.append(file)
        elif note.compaction_id not in seen:
            seen.add(note.compaction_id)
            before, after = (sum(each.rows for each in some) for some in (note.replaced, note.added))
            if before != after:
                findings.append(f"LOSS: compaction {note.compaction_id} put {after} rows in the place of {before}")
            waiting += [StagedFile(path=each.path, rows=each.rows, size_bytes=0) for each in note.added]
    return Followed(files=files, findings=tuple(findings))


class _Notes:
    def __init__(self, notes: Sequence[CompactionNote], there: Collection[str], table: LakeTable) -> None:
        self._replacing: dict[str, list[CompactionNote]] = defaultdict(list)
        for note in notes:
            for file in note.replaced:
                self._replacing[file.path].append(note)
        gone = {file.path for note in notes for file in note.added} - set(there)
        removed = table.removals(gone).found.keys() if gone else set[str]()
        self._landed = {
            note.compaction_id for note in notes if any(f.path in there or f.path in removed for f in note.added)
        }
        # Newest first: what a later compaction that landed replaced was there.
        for note in reversed(notes):
            if any(self.replacing(file.path) for file in note.added):
                self._landed.add(note.compaction_id)

    def replacing(self, path: str) -> CompactionNote | None:
        """The compaction that landed and replaced this file."""
        return next((note for note in self._replacing.get(path, ()) if note.compaction_id in self._landed), None)
