"""How PyIceberg is told to reach the files of a table."""

from __future__ import annotations

import json

from lading.model.s3_access import S3Access
from lading.storage.libraries import iceberg_properties
from lading.tables.iceberg.fileio import ROOTS, WITHIN

FILE_IO = "lading.tables.iceberg.fileio.DurableFileIO"


def file_io_properties(options: S3Access) -> dict[str, str]:
    """How the files of a table are reached, and which it may name."""
    limits = {WITHIN: options.within} if options.within else {}
    limits |= {ROOTS: json.dumps(options.roots)} if options.roots else {}
    return {**iceberg_properties(options), **limits}
