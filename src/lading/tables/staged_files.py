"""Whether staged files are still where they were written."""

from __future__ import annotations

from collections.abc import Sequence

from lading.errors import SchemaMismatchError
from lading.model.batch import StagedFile
from lading.storage.store import ObjectStore


def check_present(storage: ObjectStore, staged: Sequence[StagedFile]) -> None:
    """Every file is there and has its size. A stranger's vacuum or removal of orphan files may have taken it."""
    for file, size in zip(staged, storage.sizes([file.path for file in staged]), strict=True):
        if size != file.size_bytes:
            was = "is gone" if size is None else f"has {size} bytes, not {file.size_bytes}"
            msg = f"The staged file {file.path} {was}"
            raise SchemaMismatchError(
                msg, left="Nothing was written to the table.", todo="The batch must be staged again.", path=file.path
            )
