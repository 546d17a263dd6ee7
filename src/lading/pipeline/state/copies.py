"""Copies of state files on the disk of a machine of Spark, up to a number of bytes.

A copy counts only when it is whole: its name, its size and its content are those that the manifest says. It is written
under another name first. Dies while it is written: that name is read by nobody, and removed later. Dies after: it is
whole, and used again. A copy that is missing is fetched again, so any may go at any time.
"""

from __future__ import annotations

import os
import re
import secrets
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from lading.clock import SystemClock

_OWN = re.compile(r"[0-9a-f]{64}(\.\d+\.[0-9a-f]+\.draft)?")
"""Names of copies: whatever else is in the folder is somebody else's."""
_DRAFT = ".draft"
_DRAFT_AGE = timedelta(hours=1)
"""Nobody writes for so long: the process that began it is gone."""
_ROUNDS = 1024
"""The folder is looked through about so often while the bytes that it may have are written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCopies:
    """A folder of copies, shared by all processes of a machine."""

    folder: str
    most_bytes: int

    def find(self, digest: str) -> bytes | None:
        """The copy of a content, which the caller checks."""
        path = Path(self.folder) / digest
        with suppress(OSError):
            content = path.read_bytes()
            os.utime(path)  # Those that were used last stay longest.
            return content
        return None

    def keep(self, digest: str, content: bytes) -> None:
        """Keep a copy. A full disk must not stop a batch."""
        path = Path(self.folder) / digest
        draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}{_DRAFT}")
        with suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                draft.touch(mode=0o600)
                draft.write_bytes(content)
                draft.replace(path)
            finally:
                draft.unlink(missing_ok=True)
        # Looking through the folder for each of many small files would take longer than to fetch them.
        if secrets.randbelow(self.most_bytes) < len(content) * _ROUNDS:
            self._make_room()

    def _make_room(self) -> None:
        """Remove what was used longest ago, until the others fit."""
        oldest_draft = (SystemClock().now() - _DRAFT_AGE).timestamp()
        there = list[tuple[float, int, str]]()
        with suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                if not _OWN.fullmatch(entry.name):
                    continue
                with suppress(OSError):  # Another process removed it.
                    facts = entry.stat(follow_symlinks=False)
                    if not entry.name.endswith(_DRAFT):
                        there.append((facts.st_mtime, facts.st_size, entry.path))
                    elif facts.st_mtime < oldest_draft:
                        os.unlink(entry.path)
        total = sum(size for _, size, _ in there)
        for _, size, path in sorted(there):
            if total <= self.most_bytes:
                return
            with suppress(OSError):
                os.unlink(path)
                total -= size


def copies_in(folder: str, most_mb: int) -> StateCopies | None:
    """A folder of copies, if there is to be one."""
    return StateCopies(folder=folder, most_bytes=most_mb * 1024 * 1024) if folder else None
