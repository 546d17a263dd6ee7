"""What a job says about its files: where they are, how they are written, and what to do with late ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa

from lading.model.row_formats import CsvOptions, JsonOptions
from lading.model.rows import OF_FILE, OF_ROW
from lading.model.s3_access import S3Access
from lading.sources.fields import FieldWatch

TOLD = pa.schema([(OF_FILE, pa.string()), (OF_ROW, pa.int64())])
"""What the reader of a file can tell of a row beside its content."""
MAX_RECORD_BYTES = 16 * 1024 * 1024


class Format(Enum):
    """How rows stand in a file."""

    CSV = "csv"
    CSV_WITH_NAMES = "csv_with_names"
    CSV_WITH_NAMES_AND_TYPES = "csv_with_names_and_types"
    JSON = "json"
    PARQUET = "parquet"
    ORC = "orc"

    @property
    def is_csv(self) -> bool:
        return self.value.startswith("csv")

    @property
    def is_text(self) -> bool:
        return self.is_csv or self is Format.JSON

    @property
    def header_lines(self) -> int:
        return {Format.CSV_WITH_NAMES: 1, Format.CSV_WITH_NAMES_AND_TYPES: 2}.get(self, 0)


class Compression(Enum):
    """How the bytes of a text file are packed. AUTO goes by the suffix of the key."""

    AUTO = "auto"
    PLAIN = "plain"
    GZIP = "gz"
    ZSTD = "zstd"
    BZ2 = "bz2"
    LZ4 = "lz4"
    """The LZ4 frame format."""
    LZ4_BLOCK = "lz4block"
    """The block format of Hadoop."""
    SNAPPY = "snappy"
    """The framing format when the file starts with its mark, the block format of Hadoop otherwise."""
    DEFLATE = "deflate"


class Ingestion(Enum):
    """Whether a load goes on for ever."""

    CONTINUOUS = "continuous"
    ONCE = "once"
    """The partition is finished when every file there was at the last listing is loaded."""


class LateFiles(Enum):
    """What happens to files that sort before the position when they appear."""

    SHOW = "show"
    LOAD = "load"


class MissingColumns(Enum):
    """What a column means that the job expects and a file does not have."""

    ERROR = "error"
    NULL = "null"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A uri, taken apart."""

    scheme: str
    """`s3` or `file`."""
    bucket: str
    """Empty for files."""
    pattern: str
    """The glob that a full key must match. Keys of local files are absolute paths."""

    @property
    def root(self) -> str:
        return f"{self.scheme}://{self.bucket}{'/' if self.bucket else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesSpec:
    """Everything that driver and executors must agree on. Pickles, so that Spark can carry it."""

    place: Place
    format: Format
    s3: S3Access = S3Access()
    compression: Compression = Compression.AUTO
    csv: CsvOptions = field(default_factory=CsvOptions)
    json: JsonOptions = field(default_factory=JsonOptions)
    path_partition_keys: tuple[str, ...] = ()
    missing_columns: MissingColumns = MissingColumns.ERROR
    """For csv with names, parquet and orc. A key that a json document lacks is always null."""
    ingestion: Ingestion = Ingestion.CONTINUOUS
    late_files: LateFiles = LateFiles.LOAD
    late_window: int = 0
    """How many loaded files are remembered; 0: 10,000, and 1,000 where late files are only shown."""
    also_load: frozenset[str] = frozenset()
    """Keys that are loaded wherever they sort and however old they are, once."""
    settle_s: float = 0.0
    """Files on a disk that were modified within so many seconds may still be written, and wait."""
    skips_unreadable: bool = False
    """Files that cannot be read are put aside: the columns are those of the first one that can."""
    max_record_bytes: int = MAX_RECORD_BYTES
    """A longer row or document stops the load: more likely the delimiter is wrong. Bounds memory."""
    watch: FieldWatch | None = None
    """What is done about fields that the job does not know. None: nobody looks at them."""
    tells: tuple[str, ...] = ()
    """What rows tell beside their content: `_file`, `_row`."""
    schema: pa.Schema | None = None
    """Source columns, without those of the path. Text formats have strings only. None: not yet known."""

    @property
    def remembered_keys(self) -> int:
        return self.late_window or (10_000 if self.late_files is LateFiles.LOAD else 1_000)


_SUFFIXES = {
    ".gz": Compression.GZIP,
    ".gzip": Compression.GZIP,
    ".zst": Compression.ZSTD,
    ".zstd": Compression.ZSTD,
    ".bz2": Compression.BZ2,
    ".lz4": Compression.LZ4,
    ".snappy": Compression.SNAPPY,
    ".deflate": Compression.DEFLATE,
}


def compression_of(key: str, spec: FilesSpec) -> Compression:
    """The compression of a whole file. Parquet and ORC compress inside and have none."""
    if not spec.format.is_text:
        return Compression.PLAIN
    if spec.compression is not Compression.AUTO:
        return spec.compression
    name = key.lower()
    return next((kind for suffix, kind in _SUFFIXES.items() if name.endswith(suffix)), Compression.PLAIN)
