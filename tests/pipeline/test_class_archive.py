"""The archive of Spark's classes: who makes it when, who uses it, and what becomes of one that cannot be made."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lading.pipeline.class_archive import OPTION, SETTING, archive_of, with_archive
from lading.pipeline.java import Java
from lading.service.runtime.fast_start import FastStart

pytestmark = pytest.mark.java  # Something called java is started.
DUMPS = """#!/bin/sh
for word do case "$word" in -XX:SharedArchiveFile=*) echo "$@" > "${word#*=}";; esac; done
exit STATUS
"""


@pytest.fixture
def spark() -> Iterator[subprocess.Popen[bytes]]:
    """A process whose command line has a class path."""
    command = [sys.executable, "-c", "import sys; sys.stdin.read()", "-cp", "/a.jar:/b.jar"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        yield process


def java_that(home: Path, *, status: int) -> Java:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(DUMPS.replace("STATUS", str(status)))
    program.chmod(0o700)
    return Java(home=str(home), version=17, origin="a test")


def noted(folder: Path, java: Java) -> str:
    """What the first start has on its command line; its classes are noted."""
    folder.mkdir()
    options = with_archive({}, folder, java, notes=True)[OPTION]
    archive_of(folder, java).noted.write_text("java/lang/Object")
    return options


def test_the_first_start_notes_classes_and_later_ones_use_the_archive(
    tmp_path: Path, spark: subprocess.Popen[bytes]
) -> None:
    java, folder = java_that(tmp_path / "java", status=0), tmp_path / "a home"
    archive = archive_of(folder, java)
    assert noted(folder, java) == f'"-XX:DumpLoadedClassList={archive.noted}" -Xlog:cds=off'
    (folder / "classes-of-another-java.jsa").touch()
    FastStart(folder).keep(java, spark, rest_s=0)
    assert archive.path.read_text().endswith("-cp /a.jar:/b.jar\n")
    assert [path.name for path in folder.iterdir()] == [archive.path.name]
    assert with_archive({}, folder, java)[OPTION].startswith(f'"-XX:SharedArchiveFile={archive.path}" -Xshare:auto')
    (tmp_path / "java" / "release").write_text("another Java in the same place")
    assert with_archive({}, folder, java) == {}


def test_a_java_that_makes_none_is_not_asked_again(tmp_path: Path, spark: subprocess.Popen[bytes]) -> None:
    java, folder = java_that(tmp_path / "java", status=1), tmp_path / "home"
    noted(folder, java)
    FastStart(folder).keep(java, spark, rest_s=0)
    assert not archive_of(folder, java).path.exists()
    assert with_archive({}, folder, java, notes=True) == {}


def test_a_service_that_ends_makes_none(tmp_path: Path, spark: subprocess.Popen[bytes]) -> None:
    java, folder = java_that(tmp_path / "java", status=0), tmp_path / "home"
    noted(folder, java)
    fast = FastStart(folder)
    keeping = threading.Thread(target=fast.keep, args=(java, spark))
    keeping.start()
    fast.close()
    keeping.join(30)
    assert not keeping.is_alive()
    assert not archive_of(folder, java).path.exists()


def test_who_wants_none_or_has_java_options_of_their_own_gets_what_they_gave(tmp_path: Path) -> None:
    java = java_that(tmp_path / "java", status=0)
    for given in ({SETTING: "no"}, {OPTION: "-Dx=y"}):
        assert with_archive(given, tmp_path, java, notes=True) == given


START = """
import os, sys
from pathlib import Path
from lading.pipeline.class_archive import with_archive
from lading.pipeline.java import find_java
from lading.pipeline.process import process_of
from lading.pipeline.session import open_session
from lading.service.runtime.fast_start import FastStart
home = Path(sys.argv[1])
java = find_java(os.environ, home)
spark = open_session(with_archive({}, home, java, notes=True), java, home)
assert spark.range(3).count() == 3
process = process_of(spark)
print(".jsa" in "".join(line for line in open(f"/proc/{process.pid}/maps") if "classes-" in line))
FastStart(home).keep(java, process, rest_s=0)
"""


@pytest.mark.slow
def test_spark_starts_with_an_archive_that_another_start_made(tmp_path: Path) -> None:
    home = tmp_path / "home of Spark"
    home.mkdir()
    told = [
        subprocess.run([sys.executable, "-c", START, str(home)], capture_output=True, text=True, check=False)
        for _ in range(2)
    ]
    assert [one.returncode for one in told] == [0, 0], told
    assert [one.stdout.strip() for one in told] == ["False", "True"]
    assert not [line for one in told for line in one.stderr.splitlines() if "cds" in line.lower() or "shared" in line]
