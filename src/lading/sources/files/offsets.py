"""Names of files as people write them in an offset, and the keys that are meant."""

from __future__ import annotations

from pathlib import Path

from lading.sources.files.glob import compile_glob
from lading.sources.files.spec import Place


def whole_name(name: str, place: Place) -> str:
    """The key that a name means.

    A name without a folder is one in the folder of the job's files; a path that is not absolute is seen from here. The
    file need not exist.
    """
    whole = name.removeprefix(place.root)
    if "/" not in whole:
        return _folder(place) + whole
    if place.scheme == "file" and not whole.startswith("/"):
        return str(Path.cwd() / whole.removeprefix("./"))
    return whole


def warn_outside(key: str, place: Place) -> str:
    """What an offset does that is not where the job's files are; empty for one that is.

    Doris takes it without a word. It sorts before all files of the job, or behind them all.
    """
    folder = _folder(place)
    if not key or key.startswith(folder):
        return ""
    effect = "all of them are loaded" if key < folder else "none of them is loaded, now or later"
    return f"{key} is not in {folder}, where the files of the job are: {effect}"


def _folder(place: Place) -> str:
    prefix = compile_glob(place.pattern).literal_prefix
    return prefix[: prefix.rfind("/") + 1]
