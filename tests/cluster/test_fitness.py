"""An executor that is not fit for a task says why, whatever Lading it has; a fit one runs it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JError
from pyspark import cloudpickle
from pyspark.find_spark_home import _find_spark_home
from pyspark.serializers import CloudPickleSerializer

import lading
from lading.clock import SystemClock
from lading.errors import StageError
from lading.pipeline import guard
from lading.pipeline.errors import can_heal, cause_of
from lading.pipeline.executor_needs import ALWAYS, needs_of
from lading.pipeline.executors import watch_waiting
from lading.pipeline.stage import failed_batch
from lading.service.home import Home
from lading.service.runtime.spark import Engine
from tests.support.spark_cluster import bare_python

pytestmark = pytest.mark.long

SOURCE = Path(lading.__file__).parent
SPARK = [str(path) for path in (Path(_find_spark_home()) / "python" / "lib").glob("*.zip")]
RUN = "import pickle, sys; print(list(pickle.loads(sys.stdin.buffer.read())(iter([1, 2]))))"
LOST = "Lost task 0.3 in stage 0.0 (TID 3) (10.0.0.7 executor 1)"
OTHER = "Python in worker has different version: 3.12 than that in driver: 3.11, PySpark cannot run with these"


def run_task(python: str, *paths: str) -> subprocess.CompletedProcess[str]:
    """What an executor does with a task: Spark's Python unpickles it and runs it."""
    cloudpickle.register_pickle_by_value(guard)  # type: ignore[no-untyped-call]  # PySpark has no types here
    pickled: Callable[[object], bytes] = CloudPickleSerializer().dumps  # type: ignore[no-untyped-call]  # nor here
    task = pickled(partial(guard.guarded, needs_of(["confluent-kafka"]), pickled(partial(map, float))))
    path = ":".join([*SPARK, *paths])
    said = subprocess.run([python, "-c", RUN], input=task, capture_output=True, env={"PYTHONPATH": path}, check=False)
    return subprocess.CompletedProcess(python, said.returncode, said.stdout.decode(), said.stderr.decode())


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python that has nothing but what its path says."""
    return bare_python(tmp_path_factory.mktemp("bare") / "python")


def copy_of(folder: Path, old: str, new: str) -> str:
    """Lading with another text at one place, and without a function that this one has."""
    shutil.copytree(SOURCE, folder / "lading", ignore=shutil.ignore_patterns("__pycache__", "testing"))
    first, stager = folder / "lading" / "__init__.py", folder / "lading" / "pipeline" / "stager.py"
    assert old in first.read_text()
    first.write_text(first.read_text().replace(old, new))
    stager.write_text(stager.read_text().replace("def _read(", "def _read_as_it_was("))
    return str(folder)


def refusal(said: subprocess.CompletedProcess[str]) -> str:
    assert (said.returncode, said.stdout) == (1, ""), said.stderr
    error = Exception(said.stderr)
    assert not can_heal(error)
    failed = failed_batch(error)
    assert (failed.code, failed.retry) == ("UnfitExecutor", False)
    assert "lading package" in str(failed)
    assert cause_of(error).startswith("The executor on ")
    return failed.what


def test_an_executor_without_lading_is_refused(python: str) -> None:
    told = refusal(run_task(python))
    assert f"has no Lading, and the service {lading.__version__}" in told
    assert python in told


def test_an_executor_with_an_older_lading_is_refused_by_its_version(python: str, tmp_path: Path) -> None:
    path = copy_of(tmp_path, f'"{lading.__version__}"', '"0.0.9"')
    assert f"has Lading 0.0.9, and the service {lading.__version__}" in refusal(run_task(python, path))


@pytest.mark.slow
def test_an_executor_with_another_build_of_the_same_version_is_refused(python: str, tmp_path: Path) -> None:
    told = refusal(run_task(python, copy_of(tmp_path, "Lading: continuous", "Lading: other")))
    assert f"has another build of Lading {lading.__version__}" in told


def test_an_executor_that_lacks_a_library_of_the_job_is_refused(python: str) -> None:
    told = refusal(run_task(python, str(SOURCE.parent)))
    assert all(f"lacks {name}, of which the service has" in told for name in (*ALWAYS, "confluent-kafka"))
    assert "sqlglot" not in told


def test_a_fit_executor_runs_the_task() -> None:
    said = run_task(sys.executable, str(SOURCE.parent), str(SOURCE.parent.parent))
    assert said.stdout == "[1.0, 2.0]\n", said.stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            f"{LOST}: org.apache.spark.SparkException:\nError from python worker:\n  /usr/bin/python3.11: Error while "
            "finding module specification for 'lading.x' (ModuleNotFoundError: No module named 'lading')\n"
            "PYTHONPATH was:\n  /spark/python",
            "The executor on 10.0.0.7 has no Lading, which the tasks of the service need",
        ),
        (
            f'{LOST}: java.io.IOException: Cannot run program "python3.11": error=2, No such file or directory',
            "The executor on 10.0.0.7 has no Python called python3.11, which the service asks for "
            "(spark.pyspark.python)",
        ),
        (
            f"{LOST}: pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] {OTHER}.",
            f"The executor on 10.0.0.7 runs another Python than the service: {OTHER}",
        ),
    ],
)
def test_what_spark_says_of_such_an_executor_is_understood(text: str, told: str) -> None:
    assert failed_batch(Exception(text)).what == told


@pytest.mark.parametrize("why", ["error=12, Cannot allocate memory", "error=24, Too many open files"])
def test_a_machine_that_cannot_start_a_worker_now_is_tried_again(why: str) -> None:
    assert can_heal(Exception(f'{LOST}: java.io.IOException: Cannot run program "python3.11": {why}'))


def test_a_task_that_misses_a_module_of_its_own_is_another_matter() -> None:
    assert can_heal(Exception("ModuleNotFoundError: No module named 'somebodys_formatter'"))


class DeadContext:
    """What is left of Spark when its Java has been ended."""

    master = "spark://far:7077"

    def getConf(self) -> dict[str, str]:
        return {}

    @property
    def _jsc(self) -> object:
        raise Py4JError


class DeadSession:
    sparkContext = DeadContext()
    conf = SimpleNamespace(get=lambda name: "false")


def test_a_spark_that_ends_while_its_cores_are_counted_is_tried_again(tmp_path: Path) -> None:
    """The job was paused by an error of Py4J."""
    engine = Engine(Home(path=tmp_path), {}, cast("Any", DeadSession()))
    with pytest.raises(StageError, match="Spark ended"):
        engine.cores()


def test_one_that_ended_once_is_replaced_without_a_word_to_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that is being opened would be paused by it, and a run of jobs would end with that."""
    engine = Engine(Home(path=tmp_path), {}, cast("Any", DeadSession()))
    alive = SimpleNamespace(
        sparkContext=SimpleNamespace(master="local[7]", defaultParallelism=7, getConf=dict), conf=DeadSession.conf
    )
    sessions = iter([DeadSession(), alive])
    monkeypatch.setattr(engine, "session", lambda: next(sessions))
    assert engine.cores() == 7


def test_what_fails_in_spark_itself_is_named_and_not_the_call_that_met_it() -> None:
    aborted = (
        "An error occurred while calling o488.collectToPython.\n: org.apache.spark.SparkException: Job aborted due"
    )
    text = f"{aborted} to stage failure: Task 1 in stage 3.0 failed 1 times, most recent failure: {LOST}: "
    full = "java.io.IOException: No space left on device\n\tat java.base/java.io.FileOutputStream.writeBytes(Native)"
    assert cause_of(RuntimeError(text + full)) == "IOException: No space left on device"
    nested = f"org.apache.spark.SparkException: it failed\n\tat x.y(Z)\nCaused by: {full}"
    assert cause_of(RuntimeError(text + nested)) == "IOException: No space left on device"


class Ticking(SystemClock):
    """Ten seconds later whenever it is looked at."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def monotonic_s(self) -> float:
        self._now_s += 10
        return self._now_s


def test_a_batch_without_an_executor_is_told_once_and_taken_back_when_there_is_one() -> None:
    there = [1, 1, 1, 2, 2, 1]
    """With the driver: two looks after the first none has come, then one, and then it is gone again."""
    ended, told = threading.Event(), list[str]()

    def infos() -> list[int]:
        left = there.pop(0)
        if not there:
            ended.set()
        return [0] * left

    tracker = SimpleNamespace(getExecutorInfos=infos)
    java = SimpleNamespace(sc=lambda: SimpleNamespace(statusTracker=lambda: tracker))
    session = SimpleNamespace(sparkContext=SimpleNamespace(_jsc=java, master="spark://far:7077"))
    watching = watch_waiting(cast("Any", session), ended, told.append, Ticking())
    assert watching is not None
    watching.join(30)
    assert [bool(each) for each in told] == [True, False, True]
    assert "no executor from spark://far:7077" in told[0]
