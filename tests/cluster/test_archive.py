"""The archive for executors: whole, the same each time, and used by itself."""

from __future__ import annotations

import json
import tarfile
import tracemalloc
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

import lading
from lading.cli.main import app
from lading.errors import ConfigError, SourceError
from lading.model.batch import Limits
from lading.pipeline.archive import MANIFEST, archive_name, build_archive
from lading.pipeline.cluster import ARCHIVE, executor_python, executor_settings, is_near, query_settings, with_secret
from lading.pipeline.executor_needs import fingerprint
from lading.pipeline.quarantine import QuarantineObject, check_seen, quarantine_lines, read_quarantine_object
from lading.pipeline.replays import ReplayQuarantine
from lading.pipeline.session import _options
from lading.service.runtime.spark import local_cores
from lading.settings import read_spark_settings
from lading.sources.files.place import parse_uri
from lading.sources.files.source import FilesSource
from lading.sources.files.spec import FilesSpec, Format
from lading.storage.local import LocalStore
from lading.storage.store import open_store
from lading.testing.marked import secret
from tests.tables.s3_server import S3Server


def test_the_archive_has_lading_and_its_libraries_with_what_they_need(tmp_path: Path) -> None:
    built = build_archive(tmp_path / "a.tar.gz", ["cryptography", "confluent-kafka"])
    assert {"cryptography", "cffi", "pycparser", "confluent-kafka", "fastavro", "protobuf"} <= built.libraries.keys()
    assert not {"pyspark", "py4j", "pytest"} & built.libraries.keys()
    with tarfile.open(built.path) as tar:
        names = tar.getnames()
        manifest = json.loads(tar.extractfile(MANIFEST).read())  # type: ignore[union-attr]
    assert (manifest["lading"], manifest["fingerprint"]) == (lading.__version__, fingerprint())
    source = Path(lading.__file__).parent
    assert {f"lading/{path.relative_to(source)}" for path in (source / "pipeline").rglob("*.py")} <= set(names)
    assert not [name for name in names if name.startswith("lading/testing/")], "it has keys of tests"
    assert any(name.startswith("cryptography-") for name in names), "its version is read from there"
    assert not [name for name in names if "__pycache__" in name or name.startswith(("/", ".."))]
    again = build_archive(tmp_path / "b.tar.gz", ["cryptography", "confluent-kafka"])
    assert again.path.read_bytes() == built.path.read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"a.tar.gz", "b.tar.gz"}


def test_a_library_that_is_not_here_is_no_archive(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no-such-library is not installed"):
        build_archive(tmp_path / "a.tar.gz", ["no-such-library"])
    assert not list(tmp_path.iterdir())


def test_an_archive_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = CliRunner().invoke(app, ["package", "--output", str(tmp_path / "file" / "x.tar.gz")])
    assert isinstance(said.exception, ConfigError)
    assert "cannot be written" in str(said.exception)


def test_a_cluster_gets_the_archive_and_this_machine_none(tmp_path: Path) -> None:
    (tmp_path / archive_name()).write_text("an archive")
    far = executor_settings({"spark.master": "spark://far:7077", "spark.archives": "x.zip#x"}, tmp_path)
    assert far["spark.archives"] == f"x.zip#x,{tmp_path / archive_name()}#lading"
    assert far["spark.executorEnv.PYTHONPATH"] == "lading"
    assert executor_settings({"spark.master": "local[4]"}, tmp_path) == {}
    assert executor_settings({"spark.master": "k8s://https://far"}, tmp_path) == {}
    assert executor_settings({"spark.master": "yarn", ARCHIVE: "none"}, tmp_path) == {}
    assert executor_settings({"spark.master": "yarn", ARCHIVE: "hdfs:///a.tar.gz"}, tmp_path) != {}
    with pytest.raises(ConfigError, match="is not there"):
        executor_settings({"spark.master": "yarn", ARCHIVE: str(tmp_path / "gone")}, tmp_path)


def test_executors_elsewhere_find_this_machine_and_their_own_python(tmp_path: Path) -> None:
    """They were sent to 127.0.0.1, to the Python of this machine, and to a folder of its home for what they spill."""
    far = {"spark.master": "spark://far:7077", ARCHIVE: "none", "spark.authenticate.secret": "x"}
    options = _options(far, tmp_path, tmp_path)
    assert not {"spark.driver.host", "spark.driver.bindAddress", "spark.local.dir"} & options.keys()
    assert _options({}, tmp_path, tmp_path)["spark.driver.host"] == "127.0.0.1"
    near = _options({**far, "spark.master": "spark://127.0.0.1:7077,localhost:7078"}, tmp_path, tmp_path)
    assert near["spark.driver.host"] == "127.0.0.1"
    assert not is_near("spark://127.0.0.1:7077,far:7077")
    assert executor_python({}, {}).startswith("python3.")
    assert executor_python({}, {"PYSPARK_PYTHON": "/opt/python"}) == "/opt/python"
    assert executor_python({"spark.pyspark.python": "/a/python"}, {"PYSPARK_PYTHON": "/opt/python"}) == "/a/python"


def test_the_secret_of_a_standalone_cluster_is_read_from_its_file(tmp_path: Path) -> None:
    """Spark itself says that there is none: it reads such files on Kubernetes only."""
    path = tmp_path / "secret"
    path.write_text(secret("cluster-file") + "\n")
    settings = {"spark.master": "spark://far:7077", "spark.authenticate.secret.file": str(path)}
    assert with_secret(settings) == {
        "spark.master": "spark://far:7077",
        "spark.authenticate.secret": secret("cluster-file"),
    }
    assert with_secret({**settings, "spark.master": "k8s://far"}) == {**settings, "spark.master": "k8s://far"}
    path.unlink()
    with pytest.raises(ConfigError, match="cannot be read"):
        with_secret(settings)


def test_queries_do_not_wait_for_the_cores_that_batches_have() -> None:
    settings = {
        "spark.master": "spark://far:7077",
        "spark.authenticate.secret.file": "/x",
        "spark.executor.memory": "1g",
    }
    assert query_settings(settings) == {"spark.master": "local[*]", "spark.executor.memory": "1g"}
    asked = query_settings({**settings, "spark.lading.queries.master": "spark://other:7077"})
    assert asked["spark.master"] == "spark://other:7077"
    assert asked["spark.authenticate.secret.file"] == "/x"
    assert query_settings({"spark.master": "yarn"}) == {"spark.master": "yarn"}


def test_batches_are_cut_for_the_cores_of_spark_and_those_are_asked_for_when_there_is_something_to_cut(
    tmp_path: Path,
) -> None:
    asked: list[int] = []

    def cores() -> int:
        asked.append(1)
        return 7

    spec = FilesSpec(place=parse_uri(f"{tmp_path}/*.csv"), format=Format.CSV)
    source = FilesSource(spec, parallel=cores)
    opened = source.open("")
    nothing = source.plan(opened.partitions, Limits())
    assert not asked
    (tmp_path / "a.csv").write_bytes(b"1,2,3,4,5,6\n" * 3_000_000)
    plan = source.plan(opened.partitions, Limits())
    assert (len(plan), len(nothing)) == (7, 0)
    assert (local_cores("local[3]"), local_cores("local[5,2]"), local_cores("local")) == (3, 5, 1)


def test_bad_rows_on_a_disk_that_the_service_does_not_see_stop_the_batch(tmp_path: Path) -> None:
    """They were billed, and nobody could read them."""
    (tmp_path / "seen.jsonl").write_text("{}\n")
    check_seen([str(tmp_path / "seen.jsonl"), "s3://bucket/_lading/x.jsonl"])
    with pytest.raises(SourceError, match="executors have another disk"):
        check_seen([str(tmp_path / "elsewhere.jsonl")])


def test_bad_rows_beside_a_table_are_read_back(tmp_path: Path) -> None:
    made = QuarantineObject(partial(LocalStore, tmp_path), "_lading/j/quarantine", "1-2")
    made.add(file="a.csv", row=7, reason="no number", raw=b"x,\xff\xe2\x80\xa8y")
    assert made.close() == f"{tmp_path}/_lading/j/quarantine/1-2.jsonl"
    store, key = LocalStore(tmp_path), "_lading/j/quarantine/1-2.jsonl"
    told = {"file": "a.csv", "row": 7, "reason": "no number", "raw": "x,\\xff\u2028y"}
    assert list(read_quarantine_object(store, key)) == [told]
    store.put(key, b"{}\n[1]\nno json\n")
    assert [row.get("reason") for row in read_quarantine_object(store, key)] == [
        None,
        *2 * ["the quarantine file is damaged"],
    ]
    assert [row["reason"] for row in read_quarantine_object(store, "gone")] == ["the quarantine file is gone"]


def test_many_bad_rows_beside_a_table_are_never_in_memory_at_once(s3: S3Server) -> None:
    """Neither when they are written nor when the first of them are shown."""
    bucket, raw, count = s3.make_bucket(), b"x" * 100_000, 400
    store = open_store(f"s3://{bucket}", s3.options)
    store.put("_lading/warm", b"")  # What the client loads when it is first used is not counted.
    made = QuarantineObject(lambda: store, "_lading/j/quarantine", "1-2")
    tracemalloc.start()
    for row in range(count):
        made.add(file="a.csv", row=row, reason="no number", raw=raw)
    assert made.close() == f"s3://{bucket}/_lading/j/quarantine/1-2.jsonl"
    rows = read_quarantine_object(store, "_lading/j/quarantine/1-2.jsonl")
    assert [row["row"] for row in rows] == list(range(count))
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < len(raw) * count / 2


def test_bad_rows_in_a_bucket_are_taken_up_line_by_line(s3: S3Server) -> None:
    bucket = s3.make_bucket()
    opened = partial(open_store, f"s3://{bucket}", s3.options)
    made = QuarantineObject(opened, "_lading/j/quarantine", "1-2")
    for row in range(3):
        made.add(file="a.csv", row=row, reason="no number", raw=b"x" * row, form={"reads": "csv"})
    place = made.close()
    again = ReplayQuarantine(
        partial(quarantine_lines, opened), partial(QuarantineObject, opened, "_lading/j/quarantine"), "3-4"
    )
    again.add(file=place, row=2, reason="still", raw=b"")
    old, new = ([json.loads(line) for line in quarantine_lines(opened, each)] for each in (place, again.close()))
    assert [row["row"] for row in old] == [0, 1, 2]
    assert new == [{**old[1], "reason": "still"}]
    with pytest.raises(SourceError, match="cannot be read"):
        list(quarantine_lines(opened, f"{place}.gone"))


def test_settings_of_spark_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "spark.conf"
    path.write_text("# ours\nspark.master  spark://far:7077\n\nspark.executor.memory=2g\n")
    assert read_spark_settings(path) == {"spark.master": "spark://far:7077", "spark.executor.memory": "2g"}
    assert read_spark_settings(None) == {}
    for text in ("master spark://far", "spark.master"):
        path.write_text(text)
        with pytest.raises(ConfigError, match="no setting of Spark"):
            read_spark_settings(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_spark_settings(tmp_path / "gone")
