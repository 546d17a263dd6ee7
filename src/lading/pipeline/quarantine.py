"""Bad rows, one JSON object a line: where the row stood, its text, and the reason."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from lading.errors import SourceError
from lading.storage.local import make_folder, sync_file
from lading.storage.store import ByteFile, ObjectStore

_IN_MEMORY_BYTES = 8 * 1024 * 1024
_PIECE_BYTES = 1024 * 1024
_LINE_BYTES = 256 * 1024 * 1024
"""No row is longer: something else is in the file."""


class QuarantineFile:
    """A file of bad rows that one attempt at one split writes. Its name is the attempt's."""

    def __init__(self, folder: str, attempt: str) -> None:
        self._path = Path(folder) / f"{attempt}.jsonl"
        make_folder(self._path.parent)
        self._file = self._path.open("w", encoding="utf-8")

    def add(self, *, file: str, row: int, reason: str, raw: bytes, form: Mapping[str, Any] | None = None) -> None:
        """Write one bad row."""
        self.put(_line(file, row, reason, raw, form))

    def put(self, line: str) -> None:
        """Write one bad row as it was written before."""
        self._file.write(line)

    def close(self) -> str:
        """Finish, durably, because the commit that follows says that these rows are here. Returns the path."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        sync_file(self._path.parent)
        return str(self._path)


class QuarantineObject:
    """The same beside the table: for executors that do not share a disk with the service."""

    def __init__(self, open_objects: Callable[[], ObjectStore], folder: str, attempt: str) -> None:
        self._open_objects = open_objects
        self._key = f"{folder}/{attempt}.jsonl"
        self._lines = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES)  # noqa: SIM115 - closed by `close`

    def add(self, *, file: str, row: int, reason: str, raw: bytes, form: Mapping[str, Any] | None = None) -> None:
        """Write one bad row."""
        self.put(_line(file, row, reason, raw, form))

    def put(self, line: str) -> None:
        """Write one bad row as it was written before."""
        self._lines.write(line.encode())

    def close(self) -> str:
        """Finish, durably, because the commit that follows says that these rows are here. Returns where."""
        objects = self._open_objects()
        with self._lines:
            size = self._lines.tell()
            self._lines.seek(0)
            if size <= _IN_MEMORY_BYTES:
                # Nobody else has this name, so it may be sent once more when no answer comes.
                objects.put(self._key, self._lines.read())
            else:
                # In parts. Dies in between: nobody sees any of them, or sees some of them and no bill names them.
                files, root = objects.arrow()
                with files.open_output_stream(f"{root}/{self._key}") as sent:
                    shutil.copyfileobj(self._lines, sent, _PIECE_BYTES)
        return f"{objects.uri}/{self._key}"


def _line(file: str, row: int, reason: str, raw: bytes, form: Mapping[str, Any] | None) -> str:
    text = raw.decode("utf-8", "backslashreplace")
    told = {"file": file, "row": row, "reason": reason, "raw": text, **(form or {})}
    return json.dumps(told, ensure_ascii=False) + "\n"


def check_seen(places: Iterable[str]) -> None:
    """Refuse a batch whose bad rows are on a disk that only the executor sees. Raises SourceError."""
    for place in places:
        if "://" not in place and not Path(place).is_file():
            msg = f"Bad rows were written to {place}, and this machine sees no such file: executors have another disk"
            todo = "Put the table on a path that all share, or in a bucket (docs/cluster.md), then RESUME."
            raise SourceError(msg, left="Nothing was committed; the position is unchanged.", todo=todo)


def quarantine_lines(open_objects: Callable[[], ObjectStore], place: str) -> Iterator[bytes]:
    """The lines of a file of bad rows, wherever it is. Raises SourceError when it cannot be read whole."""
    try:
        if "://" not in place:
            with Path(place).open("rb") as lines:
                yield from filter(None, (line.rstrip(b"\n") for line in lines))
            return
        objects = open_objects()
        key = place.removeprefix(f"{objects.uri}/")
        found = next((info for info in objects.list(key) if info.key == key), None)
        if found is None:
            raise FileNotFoundError(place)
        file = objects.open(key, if_match=found.etag, size=found.size)
        try:
            yield from _lines_of(file)
        finally:
            file.close()
    except OSError as error:
        msg = f"The quarantine file {place} cannot be read: {error}"
        raise SourceError(msg, left="Nothing was committed.", todo="Restore it, or give its rows up.") from error


def read_quarantine_object(objects: ObjectStore, key: str) -> Iterator[dict[str, object]]:
    """Bad rows of one object, piece by piece. One that is gone is said so in a row of its own."""
    is_there = objects.sizes([key])[0] is not None
    found = next((info for info in objects.list(key) if info.key == key), None) if is_there else None
    if found is None:
        yield _said(f"{objects.uri}/{key}", "the quarantine file is gone")
        return
    file = objects.open(key, if_match=found.etag, size=found.size)
    try:
        for line in _lines_of(file):
            try:
                row = json.loads(line)
            except ValueError:
                row = None
            yield row if isinstance(row, dict) else _said(key, "the quarantine file is damaged")
    finally:
        file.close()


def _lines_of(file: ByteFile) -> Iterator[bytes]:
    """Lines that are not empty; at most one of them is in memory, and a piece of the next ones."""
    rest = b""
    while piece := file.read(_PIECE_BYTES):
        *whole, rest = (rest + piece).split(b"\n")
        yield from filter(None, whole)
        if len(rest) > _LINE_BYTES:
            break
    if rest:
        yield rest


def read_quarantine(paths: Iterator[str] | list[str]) -> Iterator[dict[str, object]]:
    """Bad rows of several files, in order. A file that is gone is said so in a row of its own."""
    for path in paths:
        try:
            yield from read_quarantine_file(path)
        except OSError:
            yield _said(path, "the quarantine file cannot be read, or only its beginning")


def read_quarantine_file(path: str) -> Iterator[dict[str, object]]:
    """Bad rows of one file. What is gone or damaged is said in a row of its own; OSError may be over when it is tried
    again."""
    try:
        with Path(path).open(encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                yield row if isinstance(row, dict) else _said(path, "the quarantine file is damaged")
    except FileNotFoundError:
        yield _said(path, "the quarantine file is gone")
    except ValueError:
        yield _said(path, "the quarantine file cannot be read, or only its beginning")


def _said(path: str, reason: str) -> dict[str, object]:
    return {"file": path, "row": 0, "reason": reason, "raw": ""}
