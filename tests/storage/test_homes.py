"""What is in a home of Lading is opened for nobody, also where many files are opened at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from lading.errors import ConfigError
from lading.storage.homes import LOCK_NAME
from lading.storage.local import LocalStore


def test_no_file_of_a_home_is_opened_among_many(tmp_path: Path) -> None:
    home, inbox = tmp_path / "home", tmp_path / "in"
    for folder in (home, inbox):
        folder.mkdir()
        (folder / "a.csv").write_text("1")
    (home / LOCK_NAME).write_text("")
    (inbox / "b.csv").symlink_to(home / "a.csv")
    listed = {each.key: each for each in LocalStore().list(f"{tmp_path}/")}
    assert [Path(key).name for key, each in listed.items() if each.is_link] == ["b.csv"]
    many = LocalStore().for_many()

    def opened(path: Path) -> bytes:
        found = listed[str(path)]
        file = many.open(found.key, if_match=found.etag, size=found.size)
        with file:
            return file.read()

    assert opened(inbox / "a.csv") == b"1"
    for path in (inbox / "b.csv", home / "a.csv"):
        with pytest.raises(ConfigError, match="belongs to Lading"):
            opened(path)
