"""What `lading doctor` says of an open home: its store, file of settings, disk, tables, sources and catalogs.

It asks as a job would, changes nothing that a job reads, and goes on after what fails.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum
from functools import partial
from pathlib import Path

from lading.clock import Clock
from lading.errors import LadingError, StorageError
from lading.jobs.record import JobRecord
from lading.model.names import INTERNAL, split_table
from lading.model.s3_access import S3Access, bucket_path
from lading.service.compile.compiler import open_source
from lading.service.installation import Installation
from lading.service.security.redaction import redact
from lading.service.views.loads import views_of
from lading.tables.bills import FOLDER
from lading.tables.fresh import open_table_store

ROOM_BYTES, LITTLE_BYTES = 5_000_000_000, 500_000_000
SKEW_S, MOST_SKEW_S = 60.0, 840.0
"""S3 refuses requests whose time is a quarter of an hour away from its own."""
_NOTE = "doctor"


class CheckState(Enum):
    """How a check went."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line."""

    name: str
    state: CheckState
    said: str
    todo: str = ""


def check_home_files(home: Path) -> Check:
    """Whether others can read what is in the home. Before it is opened: opening corrects it."""
    wide = [f"{path.name or path} is {mode:04o}" for path in (home, *home.iterdir()) if (mode := _mode(path)) & 0o077]
    if wide and (mode := _mode(home)) & 0o077:
        todo = f"Run chmod -R go-rwx {home}, and consider whether its keys were exposed."
        return Check(name="permissions", state=CheckState.WARN, said=", ".join(wide[:5]), todo=todo)
    return Check(name="permissions", state=CheckState.OK, said=f"{home} is its owner's alone")


def _mode(path: Path) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def check_up(lading: Installation) -> Iterator[Check]:
    """All checks of an open home, one after the other."""
    yield _checked("store", partial(_store, lading))
    yield _settings(lading)
    yield _disk(lading.home.path)
    places: dict[tuple[str, str], tuple[str, S3Access]] = {}
    for database, name in _tables(lading):
        yield _checked(f"table {database}.{name}", partial(_table, lading, database, name, places))
    for endpoint, (bucket, access) in {place: found for (place, _), found in places.items()}.items():
        yield _checked(f"clock of {endpoint or 'AWS S3'}", partial(_clock, lading.clock, bucket, access))
    for entry in lading.catalog.external.entries():
        yield _checked(f"catalog {entry.name}", partial(_catalog, lading, entry.name))
    for stored in lading.store.list_jobs():
        yield _checked(f"source of {stored.record.full_name}", partial(_source, lading, stored.record))


def _tables(lading: Installation) -> list[tuple[str, str]]:
    """Those of the home, and those of other catalogs that jobs load."""
    catalog = lading.catalog
    own = {(database, name) for database in catalog.databases(INTERNAL) for name in catalog.tables(database)}
    return sorted(own | {split_table(stored.record.target) for stored in lading.store.list_jobs()})


def _checked(name: str, ask: Callable[[], Check | str]) -> Check:
    try:
        answer = ask()
    except LadingError as error:
        return Check(name=name, state=CheckState.FAIL, said=redact(error.what), todo=redact(error.todo))
    except Exception as error:  # noqa: BLE001 - a library said what nobody expected; it is told, and the rest is checked
        return Check(name=name, state=CheckState.FAIL, said=redact(f"{type(error).__name__}: {error}"))
    return answer if isinstance(answer, Check) else Check(name=name, state=CheckState.OK, said=redact(answer))


def _store(lading: Installation) -> str:
    lading.store.write_setting(_NOTE, lading.clock.now().isoformat())
    version = lading.store.form
    jobs = len(lading.store.list_jobs())
    return f"{lading.store.place} can be read and written, form {version}, {jobs} job{'' if jobs == 1 else 's'}"


def _settings(lading: Installation) -> Check:
    file = lading.settings.file
    if file.path is None:
        return Check(name="settings", state=CheckState.OK, said="no lading.toml; the environment and defaults count")
    said = f"{file.path} is read; {len(file.catalogs)} catalogs, {len(file.spark)} settings of Spark"
    return Check(name="settings", state=CheckState.OK, said=said)


def _disk(home: Path) -> Check:
    free = shutil.disk_usage(home).free
    said = f"{free / 1e9:,.1f} GB are free at {home}"
    if free >= ROOM_BYTES:
        return Check(name="disk", state=CheckState.OK, said=said)
    state = CheckState.WARN if free >= LITTLE_BYTES else CheckState.FAIL
    return Check(name="disk", state=state, said=said, todo="Make room: batches write files there before they commit.")


def _table(
    lading: Installation,
    database: str,
    name: str,
    places: dict[tuple[str, str], tuple[str, S3Access]],
) -> Check | str:
    """The table can be opened, and a small object can be put beside its bills, once and not twice."""
    table = lading.catalog.open_table(database, name)
    spec = table.writer_spec()
    if path := bucket_path(spec.location):
        bucket = path.partition("/")[0]
        places.setdefault((spec.options.endpoint, bucket), (bucket, spec.options))
    storage = open_table_store(spec)
    key = f"{FOLDER}/probe/{secrets.token_hex(16)}"
    try:
        puts = storage.put_if_absent(key, b"first"), storage.put_if_absent(key, b"second")
    finally:
        with suppress(StorageError):
            storage.delete([key])
    if puts != (True, False):
        said = f"{spec.location} lets two writers put the same object: two commits could both win"
        todo = "Use a store that keeps `If-None-Match: *`; see docs/tables.md."
        return Check(name=f"table {database}.{name}", state=CheckState.FAIL, said=said, todo=todo)
    return f"{spec.location} can be read and written, put-if-absent holds, {len(spec.schema)} columns"


def _clock(clock: Clock, bucket: str, access: S3Access) -> Check | str:
    from lading.storage.s3_client import client_of

    answer = client_of(access).list_objects_v2(Bucket=bucket, MaxKeys=1)
    theirs = parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
    skew_s = abs((clock.now() - theirs).total_seconds())
    said = f"{skew_s:.0f} s apart from the clock here"
    if skew_s <= SKEW_S:
        return said
    state = CheckState.WARN if skew_s < MOST_SKEW_S else CheckState.FAIL
    todo = "Set the clock of this machine (NTP): S3 refuses requests that are 15 minutes off."
    return Check(name=f"clock of {access.endpoint or 'AWS S3'}", state=state, said=said, todo=todo)


def _catalog(lading: Installation, name: str) -> str:
    with lading.catalog.external.namespaces(name) as namespaces:
        found = namespaces.databases()
    return f"it answers, with {len(found)} database{'' if len(found) == 1 else 's'}"


def _source(lading: Installation, record: JobRecord) -> Check | str:
    """What a job would ask: brokers for the ends of partitions, streams for shards, buckets for files."""
    name = f"source of {record.full_name}"
    load, addresses = lading.open_source(record)
    with closing(open_source(record, load, lading.clock, addresses)) as source:
        positions = views_of(lading).positions(record)
        if not positions.partitions:
            said, todo = "the position of the job cannot be read", "Look at its table, and at SHOW JOBS."
            return Check(name=name, state=CheckState.WARN, said=said, todo=todo)
        if source.sight is not None:
            source.sight(positions)
            return f"{load.source.kind} answers, {len(positions.partitions)} partitions"
        if source.survey is None:
            return f"{load.source.kind} answers"
        found = source.survey(positions)
        if found.remark:
            return Check(name=name, state=CheckState.WARN, said=redact(found.remark), todo="Look at docs/files.md.")
        return f"{load.source.kind} can be listed, {found.behind}"
