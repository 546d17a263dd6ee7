"""Files in an object store or on a disk, as a kind of source."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

import pyarrow as pa

from lading.errors import ConfigError
from lading.model.batch import BatchPlan
from lading.model.bill import Bill
from lading.model.file_offset import render_offset
from lading.model.load import FileIntake, LoadSpec
from lading.model.moves import Direction, PartitionMove, plain_way
from lading.model.positions import PartitionState, Positions
from lading.model.row_formats import CsvOptions
from lading.model.rows import LOADED_AT, OF_BATCH, OF_ROW, REST
from lading.model.s3_access import S3Access
from lading.net.addresses import EVERY_PRIVATE, AddressRules
from lading.sources.fields import FieldWatch, carrier
from lading.sources.files.aside import repeats_nothing
from lading.sources.files.heads import probable_separator
from lading.sources.files.inside import InsideOfFiles
from lading.sources.files.offsets import warn_outside, whole_name
from lading.sources.files.payload import parse_payload
from lading.sources.files.place import parse_uri
from lading.sources.files.properties import (
    FILE_NAMES,
    S3_TAKEN,
    FileProperties,
    S3Properties,
    implied_quotes,
    is_s3_uri,
    read_file_source,
)
from lading.sources.files.source import FilesSource, parse_offset
from lading.sources.files.spec import (
    MAX_RECORD_BYTES,
    TOLD,
    Compression,
    FilesSpec,
    Format,
    Ingestion,
    LateFiles,
    MissingColumns,
    Place,
)
from lading.sources.files.surveys import told_survey
from lading.sources.hidden import without_hidden
from lading.sources.kind import OpenContext, OpenSource
from lading.sql.properties.jobs import read_job_properties
from lading.status.lag import LagUnit
from lading.storage.aws import has_keys

_ALSO_LOAD = "s3.also_load"
_OF_BATCH = pa.schema([(LOADED_AT, pa.timestamp("us", tz="UTC")), (OF_BATCH, pa.int64())])
"""What the batch tells of all its rows."""


_NAMED = re.compile(re.escape(_ALSO_LOAD) + r"""["']\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""")


def _named(definition: str) -> str:
    """Which files a definition names; all of it where that cannot be told."""
    found = _NAMED.findall(definition)
    return found[0] if len(found) == 1 else definition


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesKind:
    """See `SourceKind`. S3(…) and FILE(…) differ in what a uri without a scheme means."""

    name: str
    metadata = pa.schema([*TOLD, *_OF_BATCH])
    libraries = ("boto3",)
    cluster_property = ""
    consumer_property = ""
    subject = "uri"
    start_properties: Collection[str] = ()
    keeps_offset = True
    is_ordered = False
    """Files are loaded wherever their names sort."""

    def names_again(self, old: str, new: str) -> bool:
        """Files that are named are loaded wherever they sort and however old they are."""
        return _ALSO_LOAD in new and _named(new) != _named(old)

    def repeats_nothing(self, was: PartitionState, now: PartitionState) -> bool:
        """So it is with SKIP FILE, and with LOAD FILE of what was put aside."""
        return repeats_nothing(was, now)

    @property
    def property_names(self) -> Collection[str]:
        return FILE_NAMES if self.name == "FILE" else S3_TAKEN

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

    def check(self, load: LoadSpec) -> None:
        read_file_source(load.source.kind, load.source.properties)

    def on_data_loss(self, properties: Mapping[str, str]) -> str:
        return "PAUSE"

    def open(self, load: LoadSpec, context: OpenContext) -> OpenSource:
        """The columns of files that nobody declared are those of the first file."""
        from lading.sources.files.reader import output_schema, read_splits
        from lading.sources.files.schema import infer_schema

        spec = _spec(load, context)
        known = infer_schema(spec, clock=context.clock) if context.reads_rows else None
        told = [name for name in context.metadata if known is None or not _has_column(known, name)]
        beside = [field for field in _OF_BATCH if field.name in told]
        if known is not None:
            known = replace(known, tells=tuple(name for name in TOLD.names if name in told))
        source = FilesSource(known or spec, parallel=context.parallel or cores_here, clock=context.clock)
        if OF_ROW in told and spec.format is not Format.PARQUET:
            source.read_uncut()  # Who begins in the middle of such a file cannot know how many rows are before it.
        schema = None
        if known is not None:
            own = without_hidden(output_schema(known), keeps_rest=bool(load.evolution.rescued_column))
            schema = pa.schema([*own, *beside])
        expected = pa.schema([*_texts(context.columns), *(self.metadata.field(name) for name in told)])
        return OpenSource(
            driver=source,
            read=partial(read_splits, known or spec),
            schema=schema,
            told=tuple(told),
            of_batch=tuple(field.name for field in beside),
            expected=expected if spec.format.is_text and context.reads_rows else None,
            knows=_knows(known, schema),
            start=_offset_text(load.intake.offset),
            resolve=lambda moves: {name: _key(at, spec.place) for name, at in moves.items()},
            show_range=_files_of,
            show_end=lambda: _offset_text(source.end()),
            is_once=spec.ingestion.value == "once",
            survey=lambda positions: told_survey(source.partition, source.survey(positions), spec.settle_s),
            look_everywhere=source.look_everywhere,
            read_uncut=source.read_uncut,
            can_learn_columns=lambda: source.first_file() is not None,
            inside=InsideOfFiles(known or spec),
        )

    def located(
        self, source: Mapping[str, str], properties: Mapping[str, str]
    ) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """A relative path means one seen from here, now. Positions, and files that are asked for, are whole names: a
        part of one would sort before or behind them all. Quotes around fields of CSV files are written down, so that
        the definition says how its files are read.
        """
        where, located = dict(source), dict(properties)
        uri = source.get("uri", "")
        if self.is_local(source) and uri.strip() and "://" not in uri and not uri.startswith("/"):
            where["uri"] = f"{Path.cwd()}/{uri.removeprefix('./')}"
        where |= implied_quotes(source)
        if offset := properties.get("offset"):
            key = parse_offset(offset)
            if (whole := whole_name(key, parse_uri(where["uri"]))) != key:
                located["offset"] = render_offset(whole)
        if names := read_job_properties({k: v for k, v in properties.items() if k == _ALSO_LOAD}).also_load:
            wholes = [whole_name(name, parse_uri(where["uri"])) for name in names]
            if wholes != list(names):
                located[_ALSO_LOAD] = json.dumps(wholes, ensure_ascii=False)
        return where, located

    def start_warning(self, load: LoadSpec) -> str:
        return warn_outside(load.intake.offset or "", parse_uri(load.source.properties["uri"]))

    def moved(self, properties: Mapping[str, str], moves: Sequence[PartitionMove]) -> Mapping[str, str]:
        """The offset is one of them, and shown."""
        keys = [move.end for move in moves if move.end]
        return {**properties, "offset": render_offset(keys[0])} if keys else properties

    def places_of(self, offset: str, partitions: Collection[str]) -> dict[str, str]:
        return dict.fromkeys(partitions, offset)

    def plan_move(self, opened: OpenSource, name: str, state: PartitionState, end: str | None) -> PartitionMove:
        """Lists the prefix: files between the two names are counted."""
        if end is None:
            msg = "A job that loads files has one partition, which has a position"
            raise ConfigError(msg, left="Nothing was changed.", todo="Name the last file that counts as loaded.")
        source, key = cast("FilesSource", opened.driver), end
        files, size_bytes = _files_between(source, name, *sorted((state.at, key)))
        is_back = key < state.at
        return PartitionMove(
            partition=name,
            start=state.at,
            end=key,
            direction="SAME" if key == state.at else "BACK" if is_back else "FORWARD",
            again=files if is_back else 0,
            again_bytes=size_bytes if is_back else 0,
            skipped=0 if is_back else files,
            skipped_bytes=0 if is_back else size_bytes,
            unit="files",
            remark=warn_outside(key, source.place),
        )


def _has_column(spec: FilesSpec, name: str) -> bool:
    """Whether the files themselves have a column of this name: then that is meant."""
    names = [*(spec.schema.names if spec.schema is not None else ()), *spec.path_partition_keys]
    return name in names


def _knows(spec: FilesSpec | None, schema: pa.Schema | None) -> str:
    """What a statement that asks for other columns should know of the files."""
    if spec is None or schema is None:
        return "The files have: ."
    told = f"The files have: {', '.join(schema.names)}; rows also tell {', '.join([*TOLD.names, *_OF_BATCH.names])}."
    if not spec.format.is_csv or len(schema.names) != 1:
        return told
    found = probable_separator(spec)
    return (
        f'{told} Their fields seem to be separated by {found!r}: add "column_separator" = "{found}".' if found else told
    )


def cores_here() -> int:
    """How many cores this machine has."""
    return os.cpu_count() or 2


def reaches_with_identity(properties: Mapping[str, str]) -> bool:
    """Whether properties of S3, of a source or a table, leave it to the service to sign in."""
    return not has_keys(properties, "s3") and properties.get("s3.anonymous", "").strip().lower() != "true"


def _spec(load: LoadSpec, context: OpenContext) -> FilesSpec:
    asked = read_file_source(load.source.kind, load.source.properties)
    spec = files_spec_of(asked, load.intake, context.addresses, context.settle_s)
    if spec.format is Format.JSON and not spec.json.jsonpaths:
        # The keys that the job asks for: a document may have others, and lack some of these.
        names = [name for name in context.columns if name not in spec.path_partition_keys]
        spec = replace(spec, schema=_texts(names) if names else None)
    if context.watch is not None and context.reads_rows:
        spec = replace(
            spec,
            schema=_watched_schema(spec, context.watch),
            watch=context.watch,
            missing_columns=MissingColumns.NULL,
        )
    return replace(spec, settle_s=0.0) if context.is_trial else spec


def _watched_schema(spec: FilesSpec, watch: FieldWatch) -> pa.Schema:
    """Columns of the table by their names, wherever they stand in a file, and one for all others."""
    names = [name for name in watch.columns if name not in spec.path_partition_keys]
    types = [pa.string() if spec.format.is_text else carrier(watch.known[name]) for name in names]
    return pa.schema([*map(pa.field, names, types), pa.field(REST, pa.string())])


def _files_of(plan: BatchPlan, bill: Bill | None) -> str:
    """The first and the last file of a batch, as Doris shows them. A bill has no others: files are loaded whole."""
    keys = [part.key for split in plan.splits for part in parse_payload(split.payload).parts]
    names = {"startFileName": min(keys), "endFileName": max(keys)} if keys else {}
    return json.dumps(names, ensure_ascii=False) if names else ""


def _offset_text(offset: str | None) -> str:
    return render_offset(offset) if offset else ""


def _key(written: str, place: Place) -> str:
    """The position that a name of a file means, or `{"fileName": …}`."""
    return whole_name(parse_offset(written) if written.lstrip().startswith("{") else written, place)


def _files_between(source: FilesSource, partition: str, low: str, high: str) -> tuple[int, int]:
    """How many files a job that begins at `low` loads more than one that begins at `high`, and how large they are."""
    if low == high:
        return 0, 0
    after_low, after_high = (
        source.survey(Positions(partitions={partition: PartitionState(at=at)})) for at in (low, high)
    )
    files = [each.pending.files + each.unsettled.files for each in (after_low, after_high)]
    sizes = [each.pending.size_bytes + each.unsettled.size_bytes for each in (after_low, after_high)]
    return files[0] - files[1], sizes[0] - sizes[1]


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
        skips_unreadable=intake.on_error == "SKIP",
        max_record_bytes=files.max_record_bytes or MAX_RECORD_BYTES,
        schema=_schema(files.csv) if form.is_csv else None,
    )


def _schema(asked: CsvOptions) -> pa.Schema | None:
    return _texts([name for name, _ in asked.schema]) if asked.schema else None


def _texts(names: Sequence[str]) -> pa.Schema:
    """Every column is read as a string; types are the mapping's business."""
    return pa.schema([pa.field(name, pa.string()) for name in names])
