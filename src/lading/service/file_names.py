"""Names of files as people write them in an offset, and the keys that are meant."""

from __future__ import annotations

from pathlib import Path

from lading.errors import ConfigError
from lading.sources.files.glob import compile_glob
from lading.sources.files.place import parse_uri
from lading.sql.parts import SourceFunction


def whole_name(name: str, source: SourceFunction) -> str:
    """The key that a name means.

    A name without a folder is one in the folder of the job's files; a path that is not absolute is seen from here. The
    file need not exist. Raises ConfigError for one that lies elsewhere: it would sort before or behind all of them.
    """
    uri = source.properties.get("uri", "")
    if not uri:
        return name
    place = parse_uri(uri)
    prefix = compile_glob(place.pattern).literal_prefix
    folder = prefix[: prefix.rfind("/") + 1]
    whole = name.removeprefix(place.root)
    if "/" not in whole:
        whole = folder + whole
    elif place.scheme == "file" and not whole.startswith("/"):
        whole = str(Path.cwd() / whole.removeprefix("./"))
    if not whole.startswith(folder):
        msg = f"{whole} is not in {folder}, where the files of the job are"
        todo = "Name the last file that counts as loaded; a name without a folder is taken to be there."
        raise ConfigError(msg, left="Nothing was changed.", todo=todo)
    return whole
