"""Which servers a test needs, by its marks; a test that says of none is `quick`, and cannot start any.

Java and Node read options from the environment when they start, and end at once when one of them makes no sense. So a
test that is not marked finds such options, whatever process of its own or of Lading would start them. The browser of
the tests is started by Node, the Kafka of the tests runs on Java. A test that would be skipped then fails instead.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

SPARK = "spark"
ON_JAVA, ON_NODE = (SPARK, "java", "kafka"), ("kinesis", "browser", "node")
BY_FIXTURE = {
    "jvm": "java",
    "lakes_jvm": "java",
    "metastore": "java",
    "broker": "kafka",
    "kinesis": "kinesis",
    "browser": "browser",
}
QUICK, STORAGE = "quick", "storage"
STORES = {"s3", "guarded", "postgres"}
"""Fixtures that start an S3 or a PostgreSQL. Tests that run for several kinds of storage name theirs in a parameter."""
_STORES = re.compile("(^|[-_])s3($|-)|postgres")
# Tests start Spark many times, for a few batches each: code that is compiled for speed pays off after they have ended.
_JAVA = os.environ.get("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
_NODE = os.environ.get("NODE_OPTIONS", "")
_NO_JAVA = "-XX:ATestThatStartsJavaHasTheMarkJava"
_NO_NODE = "--a-test-that-starts-node-has-the-mark-node"
_VARIABLE = {"java": ("JAVA_TOOL_OPTIONS", _NO_JAVA), "node": ("NODE_OPTIONS", _NO_NODE)}
_started: list[str] = []


def mark_servers(items: Iterable[pytest.Item]) -> None:
    """A fixture that starts a server marks its tests; others name it in a mark of their own.

    The mark `spark` is for tests that need the one session of a run and nothing else: they are a lane of `make test`.
    `make quick` leaves out those with `storage`, of the quick ones, and those with `long`.
    """
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        for fixture in BY_FIXTURE.keys() & fixtures:
            item.add_marker(BY_FIXTURE[fixture])
        if SPARK in fixtures:
            item.add_marker("java" if _has_one(item, (*ON_JAVA, *ON_NODE)) else SPARK)
        if not _has_one(item, ("slow", *ON_JAVA, *ON_NODE)):
            item.add_marker(QUICK)
        if STORES & fixtures or _STORES.search(getattr(getattr(item, "callspec", None), "id", "")):
            item.add_marker(STORAGE)


def allow_servers(item: pytest.Item) -> None:
    """Before the fixtures of a test: from now on only servers that it names can be started."""
    os.environ["JAVA_TOOL_OPTIONS"] = _JAVA if _has_one(item, ON_JAVA) else _NO_JAVA
    os.environ["NODE_OPTIONS"] = _NODE if _has_one(item, ON_NODE) else _NO_NODE


def take_refused() -> list[str]:
    """Programs that a test started itself without a mark for them, since the last time."""
    taken = list(_started)
    _started.clear()
    return taken


def _watched(start: Callable[..., None]) -> Callable[..., None]:
    @wraps(start)
    def noted(self: subprocess.Popen[Any], args: Any, *words: Any, **more: Any) -> None:
        program = Path(os.fsdecode(args if isinstance(args, str | bytes | os.PathLike) else next(iter(args)))).name
        variable, refusal = _VARIABLE.get(program, ("", ""))
        if variable and os.environ.get(variable) == refusal:
            _started.append(f"{program}: the test has no mark for it, see tests/servers.py")
        start(self, args, *words, **more)

    return noted


subprocess.Popen.__init__ = _watched(subprocess.Popen.__init__)  # type: ignore[method-assign]


def _has_one(item: pytest.Item, names: Iterable[str]) -> bool:
    return any(item.get_closest_marker(name) is not None for name in names)
