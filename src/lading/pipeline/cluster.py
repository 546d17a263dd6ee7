"""Settings of Spark when its tasks run on other machines: who finds whom, and what the executors are given."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from lading.errors import ConfigError
from lading.pipeline.archive import archive_name, build_archive

ARCHIVE = "spark.lading.archive"
"""Where the archive of `lading package` is; `none`: executors have Lading themselves, as in an image."""
QUERIES = "spark.lading.queries.master"
"""Where queries run, when not where batches do."""
PYTHON = "spark.pyspark.python"
_FOLDER = "lading"
"""What the archive is called where an executor runs."""
_PATH = "spark.executorEnv.PYTHONPATH"
_ARCHIVES = "spark.archives"
_SECRET_FILE = re.compile(r"spark\.authenticate\.secret\.(?:driver\.)?file")
_LOOPBACK = re.compile(r"localhost|127(?:\.\d+){3}|\[?::1]?")
_OF_A_CLUSTER = (
    "spark.authenticate.secret",
    "spark.driver.host",
    "spark.driver.bindAddress",
    "spark.driver.port",
    "spark.blockManager.port",
    "spark.driver.blockManager.port",
    "spark.executorEnv.",
    _ARCHIVES,
)
"""What a Spark that runs on this machine alone has no use for: a port that is taken would be missing elsewhere."""
_log = logging.getLogger("lading.spark")


def is_local_master(master: str) -> bool:
    """Whether tasks run in the process of Spark that is started here."""
    return re.match(r"local(?:\[|$)", master) is not None


def is_near(master: str) -> bool:
    """Whether everything of Spark is on this machine, so that nobody else needs to reach it."""
    if is_local_master(master):
        return True
    if not master.startswith("spark://"):
        return False
    hosts = [urlsplit(f"spark://{each}").hostname or "" for each in master.removeprefix("spark://").split(",")]
    return all(_LOOPBACK.fullmatch(host) for host in hosts)


def executor_python(settings: Mapping[str, str], variables: Mapping[str, str]) -> str:
    """The Python of the executors: what somebody asked for, or one of the version that runs here."""
    given = settings.get(PYTHON) or variables.get("PYSPARK_PYTHON")
    return given or f"python{sys.version_info[0]}.{sys.version_info[1]}"


def executor_settings(settings: Mapping[str, str], folder: Path) -> dict[str, str]:
    """What gives executors Lading and its libraries. The archive is built in the folder when nobody names one."""
    master = settings.get("spark.master", "")
    given = settings.get(ARCHIVE, "none" if master.startswith("k8s:") else "")
    if is_local_master(master) or given == "none":
        return {}
    place = given or str(_built(folder))
    if "://" not in place and not Path(place).is_file():
        msg = f"The archive {place}, which {ARCHIVE} names, is not there"
        raise ConfigError(msg, left="Spark was not started.", todo="Build it: lading package --output FILE.")
    others = [each for each in settings.get(_ARCHIVES, "").split(",") if each]
    paths = [_FOLDER, *filter(None, [settings.get(_PATH, "")])]
    return {_ARCHIVES: ",".join([*others, f"{place}#{_FOLDER}"]), _PATH: ":".join(paths)}


def query_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of the query process.

    A standalone cluster gives all its cores to the application that comes first, which is that of the batches: queries
    would wait for ever. So they run on this machine, unless somebody says where.
    """
    master = settings.get("spark.master", "")
    wanted = settings.get(QUERIES, "local[*]" if master.startswith("spark://") else master)
    if wanted == master:
        return dict(settings)
    own = {name: value for name, value in settings.items() if not name.startswith(_OF_A_CLUSTER)}
    return {**(own if is_local_master(wanted) else settings), "spark.master": wanted}


def with_secret(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings with the secret of a standalone cluster in the place of its file, which Spark reads on Kubernetes only.

    It goes to Java through the connection of this process, and from there to nobody: executors have it of their worker.
    """
    if not settings.get("spark.master", "").startswith("spark://"):
        return dict(settings)
    for name, path in settings.items():
        if _SECRET_FILE.fullmatch(name) and path:
            others = {other: value for other, value in settings.items() if not _SECRET_FILE.fullmatch(other)}
            try:
                return {**others, "spark.authenticate.secret": Path(path).read_text(encoding="utf-8").strip()}
            except (OSError, UnicodeDecodeError) as error:
                msg = f"The file of {name} cannot be read: {error}"
                todo = "Name a text file that the service may read."
                raise ConfigError(msg, left="Spark was not started.", todo=todo) from error
    return dict(settings)


def _built(folder: Path) -> Path:
    """The archive of this Lading, made once for a home."""
    place = folder / archive_name()
    if not place.is_file():
        _log.warning("packing Lading and its libraries for the executors, into %s", place)
        build_archive(place)
        for old in folder.glob("lading-*.tar.gz"):
            if old != place:
                old.unlink(missing_ok=True)
    return place
