"""Bad rows, one JSON object a line: where the row stood, its text, and the reason."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path


class QuarantineFile:
    """A file of bad rows that one attempt at one split writes. Its name is the attempt's."""

    def __init__(self, folder: str, attempt: str) -> None:
        self._path = Path(folder) / f"{attempt}.jsonl"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._path.open("w", encoding="utf-8")

    def add(self, *, file: str, row: int, reason: str, raw: bytes) -> None:
        """Write one bad row."""
        told = {"file": file, "row": row, "reason": reason, "raw": raw.decode("utf-8", "backslashreplace")}
        self._file.write(json.dumps(told, ensure_ascii=False) + "\n")

    def close(self) -> str:
        """Finish, durably, because the commit that follows says that these rows are here. Returns the path."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return str(self._path)


def read_quarantine(paths: Iterator[str] | list[str]) -> Iterator[dict[str, object]]:
    """Bad rows of several files, in order. A file that is gone is said so in a row of its own."""
    for path in paths:
        try:
            with Path(path).open(encoding="utf-8") as lines:
                for line in lines:
                    row = json.loads(line)
                    yield row if isinstance(row, dict) else _said(path, "the quarantine file is damaged")
        except FileNotFoundError:
            yield _said(path, "the quarantine file is gone")
        except (OSError, ValueError):
            yield _said(path, "the quarantine file cannot be read, or only its beginning")


def _said(path: str, reason: str) -> dict[str, object]:
    return {"file": path, "row": 0, "reason": reason, "raw": ""}
