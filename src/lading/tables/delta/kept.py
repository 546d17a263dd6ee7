"""Which data files a Delta table may still need: all that its log tells of, whether added or removed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from urllib.parse import unquote

import pyarrow.parquet as pq

from lading.errors import TableError
from lading.storage.store import ObjectStore
from lading.tables.delta.actions import LOG

_ENTRY = re.compile(LOG + r"/(\d{20})\.json")
_CHECKPOINT = re.compile(LOG + r"/(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10}))?\.parquet")
_OTHER_CHECKPOINT = re.compile(LOG + r"/\d{20}\.checkpoint\..*|" + LOG + r"/_sidecars/.*")
_ACTIONS = ("add", "remove")


def kept_files(storage: ObjectStore) -> set[str]:
    """Every file that an entry or a checkpoint of the log names.

    A file that was removed is named as long as the table keeps its history: deleting it is up to VACUUM. Raises
    TableError when the log cannot be read as a whole.
    """
    entries, checkpoints, is_other = list[int](), dict[int, list[str]](), False
    for key in storage.keys(f"{LOG}/"):
        if match := _ENTRY.fullmatch(key):
            entries.append(int(match[1]))
        elif match := _CHECKPOINT.fullmatch(key):
            checkpoints.setdefault(int(match[1]), []).append(key)
        else:
            is_other = is_other or _OTHER_CHECKPOINT.fullmatch(key) is not None
    if is_other:
        raise _untold(storage, "it has checkpoints of the form v2, which Lading does not read")
    kept = set[str]()
    for version in _needed_checkpoints(storage, set(entries), sorted(checkpoints)):
        for key in checkpoints[version]:
            kept.update(_in_checkpoint(storage, key))
    for version in entries:
        kept.update(_in_entry(storage, version))
    return kept


def _needed_checkpoints(storage: ObjectStore, entries: set[int], checkpoints: list[int]) -> set[int]:
    """The oldest tells of all before it, the newest of what waits for VACUUM; where entries lack, each is needed."""
    newest = max(checkpoints, default=-1)
    missing = sorted(set(range(min(checkpoints, default=-1) + 1, max(entries, default=0) + 1)) - entries)
    if missing and missing[-1] > newest:
        raise _untold(storage, f"entry {missing[-1]} of its log is missing")
    return set(checkpoints) if missing else set(checkpoints[:1] + checkpoints[-1:])


def _in_checkpoint(storage: ObjectStore, key: str) -> Iterator[str]:
    filesystem, root = storage.arrow()
    try:
        with filesystem.open_input_file(f"{root}/{key}") as opened:
            file = pq.ParquetFile(opened)
            wanted = [f"{action}.path" for action in _ACTIONS if action in file.schema_arrow.names]
            for batch in file.iter_batches(columns=wanted):
                for column in batch.columns:
                    yield from (unquote(path) for path in column.field("path").to_pylist() if path is not None)
    except (OSError, ValueError) as error:
        raise _untold(storage, f"{key} cannot be read: {error}") from error


def _in_entry(storage: ObjectStore, version: int) -> Iterator[str]:
    content = storage.get(f"{LOG}/{version:020d}.json")
    if content is None:
        raise _untold(storage, f"entry {version} of its log was removed while it was read")
    try:
        for line in content.splitlines():
            action = json.loads(line) if line.strip() else {}
            for name in _ACTIONS:
                if isinstance(said := action.get(name), dict):
                    yield unquote(str(said["path"]))
    except (ValueError, KeyError, AttributeError) as error:
        raise _untold(storage, f"entry {version} of its log cannot be read: {error}") from error


def _untold(storage: ObjectStore, why: str) -> TableError:
    msg = f"Which files the Delta table {storage.uri} needs cannot be told: {why}"
    return TableError(msg, left="Nothing was deleted.", todo="Clean it with its own engine (VACUUM).")
