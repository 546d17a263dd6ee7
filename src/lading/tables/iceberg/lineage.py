"""Row lineage: what format version 3 adds to an append.

Every row of a table has an id that it keeps. The ids of new rows are given by the commit and not by the files: the
metadata says which id is next, a snapshot says where its ids begin and how many it takes, the manifest list says where
those of each manifest begin, and a data file without an id of its own goes on where the file before it in the manifest
ended. So the manifest list is written last, by who knows what is next; and when manifests are merged, each file's
first id is written beside it, or its rows would change theirs.

PyIceberg 0.12 knows the fields and reads the format, but writes neither manifests, lists nor metadata of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyiceberg.avro.file import AvroFile, AvroOutputFile
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io import FileIO, OutputFile
from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    MANIFEST_ENTRY_SCHEMAS,
    MANIFEST_LIST_FILE_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestListWriterV2,
    ManifestWriterV2,
    PartitionFieldSummary,
    _inherit_from_manifest,
)
from pyiceberg.serializers import Compressor, ToOutputFile
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AssertTableUUID
from pyiceberg.typedef import IcebergBaseModel

VERSION: Final = 3
_FIRST_ROW_OF_MANIFEST = 15
"""Its place in the record of a manifest list, as that of a data file below is in the record of a file."""
_FIRST_ROW_OF_FILE = [field.name for field in DATA_FILE_TYPE[VERSION].fields].index("first_row_id")


class AssertNextNumbers(AssertTableUUID):
    """Nobody has taken sequence numbers or row ids since, on any branch.

    A requirement of Lading's own: PyIceberg does not look for version 3. A server would not know it, and looks itself.
    """

    sequence: int
    row_id: int

    def validate(self, base_metadata: TableMetadata | None) -> None:  # type: ignore[override]  # as PyIceberg has it
        super().validate(base_metadata)
        if base_metadata is None or (self.sequence, self.row_id) != _numbers(base_metadata):
            msg = "Requirement failed: another branch's commit took the sequence number or the row ids"
            raise CommitFailedException(msg)


def assert_next_numbers(metadata: TableMetadata) -> AssertNextNumbers:
    """The requirement that numbers are given out as these metadata say."""
    sequence, row_id = _numbers(metadata)
    return AssertNextNumbers(uuid=metadata.table_uuid, sequence=sequence, row_id=row_id)


def _numbers(metadata: TableMetadata) -> tuple[int, int]:
    return int(getattr(metadata, "last_sequence_number", 0)), next_row_id(metadata)


def next_row_id(metadata: TableMetadata) -> int:
    """The id that the next new row gets."""
    return int(getattr(metadata, "next_row_id", None) or 0)


def dump_metadata(metadata: TableMetadata) -> str:
    """Metadata as they stand in their file. PyIceberg's class of version 3 refuses to be written, and has it all."""
    return IcebergBaseModel.model_dump_json(metadata)


def write_metadata(metadata: TableMetadata, io: FileIO, metadata_path: str) -> None:
    """What catalogs without a server do in a commit."""
    if metadata.format_version != VERSION:
        ToOutputFile.table_metadata(metadata, io.new_output(metadata_path))
        return
    pack = Compressor.get_compressor(metadata_path).bytes_compressor()
    with io.new_output(metadata_path).create() as stream:
        stream.write(pack(dump_metadata(metadata.model_copy(update={"next_row_id": next_row_id(metadata)})).encode()))


class LineageManifestWriter(ManifestWriterV2):
    """A manifest of version 3."""

    @property
    def version(self) -> int:  # type: ignore[override]  # PyIceberg names 1 and 2
        return VERSION

    def new_writer(self) -> AvroOutputFile[ManifestEntry]:
        columns = self._with_partition(VERSION)
        return AvroOutputFile[ManifestEntry](
            output_file=self._output_file,
            file_schema=columns,
            record_schema=columns,
            schema_name="manifest_entry",
            metadata=self._meta,
        )

    def to_manifest_file(self) -> ManifestFile:
        """The row ids of a new manifest begin where the list says."""
        return _with_first_row(super().to_manifest_file(), None)


class LineageListWriter(ManifestListWriterV2):
    """A manifest list of version 3. It gives out row ids: `next_row_id` says which one is next after it."""

    def __init__(
        self,
        output_file: OutputFile,
        snapshot_id: int,
        parent_snapshot_id: int | None,
        sequence_number: int,
        compression: str,
        first_row_id: int,
    ) -> None:
        super().__init__(output_file, snapshot_id, parent_snapshot_id, sequence_number, compression)  # type: ignore[arg-type]  # a name of a codec
        self._format_version = VERSION
        self._meta = {**self._meta, "format-version": str(VERSION), "first-row-id": str(first_row_id)}
        self.next_row_id = first_row_id

    def __enter__(self) -> LineageListWriter:
        columns = MANIFEST_LIST_FILE_SCHEMAS[VERSION]
        self._writer = AvroOutputFile[ManifestFile](
            output_file=self._output_file,
            record_schema=columns,
            file_schema=columns,
            schema_name="manifest_file",
            metadata=self._meta,
        )
        self._writer.__enter__()
        return self

    def prepare_manifest(self, manifest_file: ManifestFile) -> ManifestFile:
        prepared = super().prepare_manifest(manifest_file)
        if prepared.content != ManifestContent.DATA:
            return _with_first_row(prepared, None)
        known = first_row_of(prepared)
        if known is not None:
            return prepared
        first = self.next_row_id
        # Also room for files that were there before: those of a table that was upgraded have no ids yet.
        self.next_row_id += (prepared.added_rows_count or 0) + (prepared.existing_rows_count or 0)
        return _with_first_row(prepared, first)


def read_manifests(io: FileIO, path: str) -> list[ManifestFile]:
    """A manifest list with row ids. Not from PyIceberg's cache, whose manifests have lost them."""
    with AvroFile[ManifestFile](
        io.new_input(path),
        MANIFEST_LIST_FILE_SCHEMAS[VERSION],
        read_types={-1: ManifestFile, 508: PartitionFieldSummary},
        read_enums={517: ManifestContent},
    ) as reader:
        return list(reader)


def read_entries(io: FileIO, manifest: ManifestFile) -> Iterator[ManifestEntry]:
    """The entries of a manifest, each data file with the id of its first row."""
    following = first_row_of(manifest)
    with AvroFile[ManifestEntry](
        io.new_input(manifest.manifest_path),
        MANIFEST_ENTRY_SCHEMAS[VERSION],
        read_types={-1: ManifestEntry, 2: DataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    ) as reader:
        for entry in reader:
            file = entry.data_file
            if following is None:
                file[_FIRST_ROW_OF_FILE] = None  # What a file says holds only in a manifest that has ids.
            elif entry.status != ManifestEntryStatus.DELETED and file[_FIRST_ROW_OF_FILE] is None:
                file[_FIRST_ROW_OF_FILE] = following
                following += file.record_count
            yield _inherit_from_manifest(entry, manifest)


def first_row_of(manifest: ManifestFile) -> int | None:
    """The id of the first row of a manifest; None when it has not been given one."""
    values = list(manifest._data)  # noqa: SLF001 - records of PyIceberg have no other name for it
    found = values[_FIRST_ROW_OF_MANIFEST] if len(values) > _FIRST_ROW_OF_MANIFEST else None
    return None if found is None else int(found)


def _with_first_row(manifest: ManifestFile, first: int | None) -> ManifestFile:
    values = list(manifest._data)[:_FIRST_ROW_OF_MANIFEST]  # noqa: SLF001
    return ManifestFile(*values, first)
