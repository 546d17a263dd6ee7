"""Files in buckets for pyarrow, with keys that end while a file is written.

A file system of pyarrow has its keys for life. Here each request has those that are good then: a file of 128 MiB is
sent in parts, and may take longer than the keys that it was begun with.
"""

from __future__ import annotations

import io
from typing import Any

import pyarrow.fs as pafs
from botocore.exceptions import BotoCoreError, ClientError

from lading.model.s3_access import S3Access
from lading.storage.errors import store_failed
from lading.storage.libraries import arrow_filesystem
from lading.storage.renewed import KeySource
from lading.storage.s3 import is_denied
from lading.storage.s3_client import client_of

PART_BYTES = 16 * 1024 * 1024
_NOT_HERE = "What is written with lent keys is only ever new files"


def lent_filesystem(keys: KeySource) -> pafs.PyFileSystem:
    """All buckets that the keys open; paths are `bucket/key`."""
    return pafs.PyFileSystem(_LentFiles(keys))


class PartedUpload(io.RawIOBase):
    """One new object. It is there when `close` returns, and not before."""

    def __init__(self, path: str, keys: KeySource) -> None:
        super().__init__()
        bucket, _, key = path.partition("/")
        self._where = {"Bucket": bucket, "Key": key}
        self._keys = keys
        self._waiting = bytearray()
        self._sent = 0
        self._upload = ""
        self._parts: list[dict[str, Any]] = []
        self._has_failed = False

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._sent + len(self._waiting)

    def write(self, content: Any, /) -> int:
        self._waiting += content
        while len(self._waiting) >= PART_BYTES:
            self._send(bytes(self._waiting[:PART_BYTES]))
            del self._waiting[:PART_BYTES]
        return len(memoryview(content))

    def close(self) -> None:
        if self.closed:
            return
        try:
            if self._has_failed:
                self._give_up()
            elif not self._upload:
                self._ask("put_object", Body=bytes(self._waiting))
            else:
                if self._waiting:
                    self._send(bytes(self._waiting))
                self._ask("complete_multipart_upload", UploadId=self._upload, MultipartUpload={"Parts": self._parts})
        finally:
            self._waiting.clear()
            super().close()

    def _send(self, part: bytes) -> None:
        if not self._upload:
            self._upload = str(self._ask("create_multipart_upload")["UploadId"])
        number = len(self._parts) + 1
        answer = self._ask("upload_part", UploadId=self._upload, PartNumber=number, Body=part)
        self._parts.append({"PartNumber": number, "ETag": answer["ETag"]})
        self._sent += len(part)

    def _give_up(self) -> None:
        """Parts that are left cost room, and no reader sees them."""
        if self._upload:
            self._ask("abort_multipart_upload", UploadId=self._upload)

    def _ask(self, operation: str, **given: Any) -> Any:
        access = self._keys()
        try:
            return self._call(access, operation, given)
        except (ClientError, BotoCoreError) as error:
            if not is_denied(error) or (other := self._keys.renew(access)) == access:
                self._has_failed = True
                raise self._failed(error) from error
        try:
            return self._call(other, operation, given)
        except (ClientError, BotoCoreError) as error:
            self._has_failed = True
            raise self._failed(error) from error

    def _call(self, access: S3Access, operation: str, given: dict[str, Any]) -> Any:
        return getattr(client_of(access), operation)(**self._where, **given)

    def _failed(self, error: Exception) -> Exception:
        return store_failed(f"s3://{self._where['Bucket']}/{self._where['Key']}", error)


class _LentFiles(pafs.FileSystemHandler):  # type: ignore[misc]  # pyarrow has no types
    """Reads with the file system of now, writes with an upload."""

    def __init__(self, keys: KeySource) -> None:
        self._keys = keys
        self._made: tuple[S3Access, pafs.FileSystem] | None = None

    def _now(self) -> pafs.FileSystem:
        access = self._keys()
        if self._made is None or self._made[0] != access:
            self._made = access, arrow_filesystem(access)
        return self._made[1]

    def get_type_name(self) -> str:
        return "lent"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> Any:
        return self._now().get_file_info(paths)

    def get_file_info_selector(self, selector: Any) -> Any:
        return self._now().get_file_info(selector)

    def create_dir(self, path: str, recursive: bool) -> None:
        """A bucket has no folders."""

    def delete_file(self, path: str) -> None:
        self._now().delete_file(path)

    def open_input_stream(self, path: str) -> Any:
        return self._now().open_input_stream(path)

    def open_input_file(self, path: str) -> Any:
        return self._now().open_input_file(path)

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        from pyarrow import PythonFile

        return PythonFile(PartedUpload(path, self._keys), mode="w")

    def open_append_stream(self, path: str, metadata: Any) -> Any:
        raise NotImplementedError(_NOT_HERE)

    def delete_dir(self, path: str) -> None:
        raise NotImplementedError(_NOT_HERE)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        raise NotImplementedError(_NOT_HERE)

    def delete_root_dir_contents(self) -> None:
        raise NotImplementedError(_NOT_HERE)

    def move(self, src: str, dest: str) -> None:
        raise NotImplementedError(_NOT_HERE)

    def copy_file(self, src: str, dest: str) -> None:
        raise NotImplementedError(_NOT_HERE)
