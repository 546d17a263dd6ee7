"""An Iceberg table whose catalog has forgotten it: found by its files, and given back to the catalog.

Each commit writes a metadata file with the next number, and then asks the catalog to name it. The file of the highest
number is the table, unless the catalog never named it: a commit that lost a race, or whose process died. Such a file
is a state of the table as whole as any other, rows and head together, as long as the files it added are there; a
commit that was known not to have landed has deleted them. Then the file may be passed over, and nothing else may:

- no other metadata file names it in its log. One that is named was the table once, for certain;
- a job of Lading wrote it, and what is missing is only what it added itself. Others' commits and older files that are
  gone are a loss, and to go back behind them would hide it;
- it says which state it was built on. That one landed, is the next lower, is whole, and has a snapshot.

So nobody goes back behind a state that landed, and no head of a job that the table had is lost. In every other case a
person is told what is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyiceberg.exceptions import ValidationError
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.serializers import FromInputFile
from pyiceberg.table.metadata import TableMetadata

from lading.errors import ConfigError, TableNotFoundError
from lading.ids import JobId
from lading.model.bill import Head
from lading.model.s3_access import S3Access
from lading.storage.store import ObjectStore
from lading.tables.bills import StoredBills
from lading.tables.iceberg.ancestry import OlderStates
from lading.tables.iceberg.catalog import ensure_namespace, make_home, open_catalog
from lading.tables.iceberg.errors import translated
from lading.tables.iceberg.file_io_properties import file_io_properties
from lading.tables.iceberg.fileio import DurableFileIO
from lading.tables.iceberg.heads import SUMMARY_JOB, find_anchor, rolled_back, summary_of
from lading.tables.iceberg.place import local_path, open_place
from lading.tables.iceberg.postgres import CatalogSpec
from lading.tables.iceberg.resume import PropertyCopies, job_ids
from lading.tables.manifest import is_same_place

_NUMBERED = re.compile(r"metadata/(\d+)-[^/]+\.metadata\.json")
_MOST_TOLD = 5
_LEFT = "Nothing was changed."


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """One metadata file."""

    number: int
    path: str
    metadata: TableMetadata | None
    """None: it cannot be read."""

    @property
    def name(self) -> str:
        return _name(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gap:
    """A file that a state needs and that is not there, or cannot be read."""

    path: str
    is_added: bool
    """The newest commit of the state added it, so it is missing too when that commit was taken back."""


class LostTable:
    """A table as its files show it, without a catalog. It can be read; to have it written to, give it back."""

    def __init__(
        self, storage: ObjectStore, io: FileIO, chosen: _State, metadata: TableMetadata, skipped: Sequence[_State]
    ) -> None:
        self.bills = StoredBills(storage, PropertyCopies(lambda: metadata))
        self.path = chosen.path
        """The metadata file."""
        self.skipped = tuple(sorted(state.path for state in skipped))
        """Metadata files of commits that did not land."""
        self._metadata = metadata
        self._io = io

    def read_head(self, job_id: JobId) -> Head | None:
        """The head of a job. Raises RolledBackError."""
        anchor = find_anchor(self._metadata, job_id)
        if anchor is not None and OlderStates().is_astray(self._metadata, self._io, anchor):
            raise rolled_back(job_id, anchor, self._metadata.location)
        return anchor.head if anchor else None

    def job_ids(self) -> set[JobId]:
        """The jobs that have a head in the table."""
        return job_ids(self._metadata)


def is_in_catalog(spec: CatalogSpec, identifier: str, options: S3Access) -> bool:
    """Whether the catalog knows a table."""
    catalog = open_catalog(spec, options)
    try:
        with translated(f"table {identifier}"):
            return catalog.table_exists(identifier)
    finally:
        catalog.close()


def register_iceberg_table(spec: CatalogSpec, identifier: str, lost: LostTable, options: S3Access) -> None:
    """Give a table back to the catalog."""
    make_home(spec)
    catalog = open_catalog(spec, options)
    try:
        with translated(f"table {identifier}"):
            # Dies before the second: an empty namespace, which harms nobody.
            ensure_namespace(catalog, identifier)
            catalog.register_table(identifier, lost.path)
    finally:
        catalog.close()


def find_lost_table(location: str, options: S3Access) -> LostTable:
    """The table at a place, by its newest metadata file. Reads only. Raises TableNotFoundError, ConfigError."""
    storage, io = open_place(location, options), DurableFileIO(file_io_properties(options))
    with translated(f"table at {location}"):
        states = [
            _State(number=int(match[1]), path=path, metadata=_read(io, path))
            for key in storage.keys("metadata/")
            if (match := _NUMBERED.fullmatch(key)) and (path := f"{storage.uri}/{key}")
        ]
        if not states:
            msg = f"There is no metadata file of an Iceberg table at {location}"
            raise TableNotFoundError(msg, left=_LEFT, todo="Restore the table's metadata folder from a copy.")
        _check_one_table(states, location)
        _check_not_moved(states, location)
        chosen, skipped = _choose(io, states, location)
        if chosen.metadata is None:
            raise _broken(location, chosen, (), has_landed=True)
        return LostTable(storage, io, chosen, chosen.metadata, skipped)


def _read(io: FileIO, path: str) -> TableMetadata | None:
    try:
        return FromInputFile.table_metadata(io.new_input(path))
    except (ValidationError, ValueError):  # It was not written to its end, or is something else.
        return None


def _check_one_table(states: Sequence[_State], location: str) -> None:
    found: dict[str, list[str]] = {}
    for state in states:
        if state.metadata is not None:
            found.setdefault(str(state.metadata.table_uuid), []).append(state.name)
    if len(found) > 1:
        tables = "; ".join(f"{uuid}: {_told(sorted(names, reverse=True))}" for uuid, names in sorted(found.items()))
        msg = f"The metadata files at {location} are of {len(found)} tables, one made after another: {tables}"
        todo = "Move the metadata files of the tables that were dropped, or never finished, out of the metadata folder."
        raise ConfigError(msg, left=_LEFT, todo=todo)


def _check_not_moved(states: Sequence[_State], location: str) -> None:
    for state in _highest(states):
        if state.metadata is not None and not is_same_place(local_path(state.metadata.location), location):
            msg = f"The table at {location} was moved or copied from {state.metadata.location}"
            todo = "Iceberg keeps absolute paths: move it back. A copy stays a copy; name the table at its own place."
            raise ConfigError(msg, left=_LEFT, todo=todo)


def _choose(io: FileIO, states: Sequence[_State], location: str) -> tuple[_State, list[_State]]:
    """The state that is the table, and those that are passed over."""
    gaps = {state.path: list(_gaps(io, state)) for state in _highest(states)}
    whole = [state for state in _highest(states) if not gaps[state.path]]
    if len(whole) > 1:
        names = ", ".join(sorted(state.path for state in whole))
        msg = f"Several metadata files could be the newest of {location}: {names}"
        todo = "Find out which one the table was at, and move the others away; each is a whole state of the table."
        raise ConfigError(msg, left=_LEFT, todo=todo)
    skipped = [state for state in _highest(states) if gaps[state.path]]
    bases = dict[str, _State]()
    for state in skipped:
        base = _base_if_not_landed(state, gaps[state.path], states)
        if base is None:
            raise _broken(location, state, gaps[state.path], has_landed=_is_named(state, states))
        bases[base.path] = base
    if whole:
        return whole[0], skipped
    if len(bases) > 1:
        msg = f"Commits that did not land at {location} were built on several states: {', '.join(sorted(bases))}"
        raise ConfigError(msg, left=_LEFT, todo="Find out which one the table was at, and move the others away.")
    (chosen,) = bases.values()
    if lost := list(_gaps(io, chosen)):
        raise _broken(location, chosen, lost, has_landed=True)
    if chosen.metadata is None or chosen.metadata.current_snapshot() is None:
        newest = skipped[0]
        raise _broken(location, newest, gaps[newest.path], has_landed=False)
    return chosen, skipped


def _base_if_not_landed(state: _State, gaps: Sequence[_Gap], states: Sequence[_State]) -> _State | None:
    """What a commit was built on that may never have landed; None when it has, or may be a loss."""
    snapshot = state.metadata.current_snapshot() if state.metadata else None
    if state.metadata is None or snapshot is None or _is_named(state, states):
        return None
    if SUMMARY_JOB not in summary_of(snapshot) or not all(gap.is_added for gap in gaps):
        return None
    logged = [_name(entry.metadata_file) for entry in state.metadata.metadata_log][-1:]
    base = next((each for each in states if each.number == state.number - 1 and each.name in logged), None)
    if base is None or base.metadata is None or base.metadata.snapshot_by_id(snapshot.snapshot_id) is not None:
        return None
    return base


def _is_named(state: _State, states: Sequence[_State]) -> bool:
    """Whether another file's log has it: then the catalog once named it."""
    logs = (other.metadata.metadata_log for other in states if other.metadata is not None and other != state)
    return any(_name(entry.metadata_file) == state.name for log in logs for entry in log)


def _highest(states: Sequence[_State]) -> list[_State]:
    number = max(state.number for state in states)
    return [state for state in states if state.number == number]


def _gaps(io: FileIO, state: _State) -> Iterable[_Gap]:
    """What is missing of a state: manifests, and files that its newest commit put into them."""
    if state.metadata is None:
        yield _Gap(path=state.path, is_added=False)
        return
    snapshot = state.metadata.current_snapshot()
    if snapshot is None:
        if state.metadata.current_snapshot_id is not None:
            yield _Gap(path=f"snapshot {state.metadata.current_snapshot_id}", is_added=False)
        return
    if not io.new_input(snapshot.manifest_list).exists():
        yield _Gap(path=snapshot.manifest_list, is_added=True)
        return
    try:
        manifests = snapshot.manifests(io)
    except (ValueError, EOFError):
        yield _Gap(path=snapshot.manifest_list, is_added=False)
        return
    for manifest in manifests:
        is_own = manifest.added_snapshot_id == snapshot.snapshot_id
        if not io.new_input(manifest.manifest_path).exists():
            yield _Gap(path=manifest.manifest_path, is_added=is_own)
        elif is_own:
            try:
                entries = manifest.fetch_manifest_entry(io, discard_deleted=True)
            except (ValueError, EOFError):
                yield _Gap(path=manifest.manifest_path, is_added=False)
                continue
            for entry in entries:
                if not io.new_input(entry.data_file.file_path).exists():
                    yield _Gap(path=entry.data_file.file_path, is_added=entry.status == ManifestEntryStatus.ADDED)


def _broken(location: str, state: _State, gaps: Sequence[_Gap], *, has_landed: bool) -> ConfigError:
    missing = _told([gap.path for gap in gaps])
    msg = f"The table at {location} is not whole: {state.name} needs files that are missing or broken: {missing}"
    todo = "Restore them from a copy of the table."
    if not has_landed:
        todo += f" Only if its commit certainly never landed: move {state.name} out of the metadata folder."
    return ConfigError(msg, left=_LEFT, todo=todo)


def _told(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _MOST_TOLD} more" if len(paths) > _MOST_TOLD else ""
    return ", ".join(paths[:_MOST_TOLD]) + more


def _name(path: str) -> str:
    return path.rpartition("/")[2]
