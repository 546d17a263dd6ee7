"""Whether staged files are still where they were written."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.fs as pafs

from lading.errors import SchemaMismatchError
from lading.model.batch import StagedFile
from lading.tables.storage import Storage


def check_present(storage: Storage, staged: Sequence[StagedFile]) -> None:
    """Every file is there and has its size. A stranger's vacuum or removal of orphan files may have taken it."""
    if not staged:
        return
    filesystem, root = storage.arrow()
    found = filesystem.get_file_info([f"{root}/{file.path}" for file in staged])
    for file, info in zip(staged, found, strict=True):
        if info.type is not pafs.FileType.File or info.size != file.size_bytes:
            was = "is gone" if info.type is pafs.FileType.NotFound else f"has {info.size} bytes, not {file.size_bytes}"
            msg = f"The staged file {file.path} {was}"
            raise SchemaMismatchError(
                msg, left="Nothing was written to the table.", todo="The batch must be staged again.", path=file.path
            )
