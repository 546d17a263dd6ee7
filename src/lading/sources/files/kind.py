"""Files in an object store or on a disk, as a kind of source."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from lading.errors import ConfigError
from lading.model.file_offset import render_offset
from lading.model.load import FileIntake
from lading.model.moves import Direction, PartitionMove, plain_way
from lading.model.positions import PartitionState, Positions
from lading.model.row_formats import CsvOptions
from lading.model.s3_access import S3Access
from lading.net.addresses import EVERY_PRIVATE, AddressRules
from lading.sources.files.place import parse_uri
from lading.sources.files.source import FileCount, FilesSource, Survey
from lading.sources.files.spec import (
    MAX_RECORD_BYTES,
    Compression,
    FilesSpec,
    Format,
    Ingestion,
    LateFiles,
    MissingColumns,
)
from lading.sql.properties.files import FileProperties, S3Properties, is_s3_uri
from lading.status.lag import LagUnit
from lading.storage.aws import has_keys


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesKind:
    """See `SourceKind`. S3(…) and FILE(…) differ in what a uri without a scheme means."""

    name: str

    @property
    def lag_unit(self) -> LagUnit:
        return LagUnit.FILES

    def position_text(self, positions: Positions) -> str:
        """The position as Doris shows it: the name of a file."""
        at = next((state.at for state in positions.partitions.values()), "")
        return render_offset(at) if at else ""

    def way(self, old: PartitionState, new: PartitionState) -> Direction:
        """Names of files are ordered as texts."""
        return plain_way(old, new) or ("BACK" if new.at < old.at else "FORWARD")

    def uses_service_identity(self, properties: Mapping[str, str]) -> bool:
        return is_s3_uri(properties.get("uri", "")) and reaches_with_identity(properties)

    def is_local(self, properties: Mapping[str, str]) -> bool:
        return self.name == "FILE" and not is_s3_uri(properties.get("uri", ""))

    def admin_properties(self, properties: Mapping[str, str]) -> Collection[str]:
        return ()


def reaches_with_identity(properties: Mapping[str, str]) -> bool:
    """Whether properties of S3, of a source or a table, leave it to the service to sign in."""
    return not has_keys(properties, "s3") and properties.get("s3.anonymous", "").strip().lower() != "true"


def _to_load(survey: Survey) -> FileCount:
    """Files that will be loaded, those that are still being written included."""
    pending, unsettled = survey.pending, survey.unsettled
    return FileCount(files=pending.files + unsettled.files, size_bytes=pending.size_bytes + unsettled.size_bytes)


def plan_file_moves(source: FilesSource, positions: Positions, key: str, remark: str = "") -> tuple[PartitionMove, ...]:
    """A move of a file job. Lists the prefix: files between the two names are counted."""
    if len(positions.partitions) != 1:
        msg = f"A job that loads files has one position, and {len(positions.partitions)} were found"
        raise ConfigError(msg, left="Nothing was changed.", todo="Report this, with SHOW BILLS of the job.")
    name, state = next(iter(positions.partitions.items()))
    low, high = sorted((state.at, key))
    files, size = 0, 0
    if low != high:
        after_low, after_high = (
            source.survey(replace(positions, partitions={name: PartitionState(at=at)})) for at in (low, high)
        )
        files = _to_load(after_low).files - _to_load(after_high).files
        size = _to_load(after_low).size_bytes - _to_load(after_high).size_bytes
    is_back = key < state.at
    return (
        PartitionMove(
            partition=name,
            start=state.at,
            end=key,
            direction="SAME" if key == state.at else "BACK" if is_back else "FORWARD",
            again=files if is_back else 0,
            again_bytes=size if is_back else 0,
            skipped=0 if is_back else files,
            skipped_bytes=0 if is_back else size,
            unit="files",
            remark=remark,
        ),
    )


_COMPRESSIONS = {"gzip": "gz", "none": "plain", "snappyblock": "snappy", "lz4frame": "lz4"}


def files_spec_of(
    source: S3Properties | FileProperties,
    intake: FileIntake,
    addresses: AddressRules = EVERY_PRIVATE,
    settle_s: float = 0.0,
) -> FilesSpec:
    """Where the files are and how they are written; without columns, unless the statement names them."""
    files = source.files
    form = Format(files.format)
    return FilesSpec(
        place=parse_uri(source.uri),
        format=form,
        s3=replace(source.access, addresses=addresses) if isinstance(source, S3Properties) else S3Access(),
        compression=Compression(_COMPRESSIONS.get(files.compress_type, files.compress_type)),
        csv=files.csv,
        json=files.json,
        path_partition_keys=files.path_partition_keys,
        missing_columns=MissingColumns(files.missing_columns.lower()),
        ingestion=Ingestion(intake.ingestion_mode.lower()),
        late_files=LateFiles(intake.late_files.lower()),
        late_window=intake.late_window or 0,
        also_load=frozenset(intake.also_load),
        settle_s=settle_s if intake.settle_s is None else intake.settle_s,
        max_record_bytes=files.max_record_bytes or MAX_RECORD_BYTES,
        schema=_schema(files.csv) if form.is_csv else None,
    )


def _schema(asked: CsvOptions) -> pa.Schema | None:
    """Every column is read as a string; types are the mapping's business."""
    return pa.schema([pa.field(name, pa.string()) for name, _ in asked.schema]) if asked.schema else None
