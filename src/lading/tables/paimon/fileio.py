"""Lading's storage in the form in which pypaimon's manifest classes want files."""

from __future__ import annotations

from io import BytesIO

from lading.errors import StorageError
from lading.storage.store import ObjectStore


class StorageFiles:
    """The few calls of pypaimon's FileIO that reading and writing manifests takes. Written files are durable."""

    def __init__(self, storage: ObjectStore) -> None:
        self._storage = storage
        self.written: list[str] = []
        """Keys of all files that were written here."""

    def new_input_stream(self, path: str) -> BytesIO:
        """A whole file: manifests are small."""
        key = self._key(path)
        content = self._storage.get(key)
        if content is None:
            msg = f"{self._storage.uri}/{key} is missing"
            todo = "Restore the file from a copy of the table."
            raise StorageError(msg, left="Nothing was changed.", todo=todo, unknown=False)
        return BytesIO(content)

    def new_output_stream(self, path: str) -> BytesIO:
        """A file that is put when it is closed."""
        return _Put(self, self._key(path))

    def delete_quietly(self, path: str) -> None:
        """Of a file that could not be written: there is none."""

    def put(self, key: str, content: bytes) -> None:
        """Names are random: a file that is there already is a mistake of somebody's."""
        if not self._storage.put_if_absent(key, content):
            msg = f"{self._storage.uri}/{key} is already there"
            raise StorageError(msg, left="It was not touched.", todo="Run the commit again.", unknown=False)
        self.written.append(key)

    def _key(self, path: str) -> str:
        return path.removeprefix(self._storage.uri).lstrip("/")


class _Put(BytesIO):
    def __init__(self, files: StorageFiles, key: str) -> None:
        super().__init__()
        self._files = files
        self._target = key

    def close(self) -> None:
        if not self.closed:
            content = self.getvalue()
            super().close()
            self._files.put(self._target, content)
