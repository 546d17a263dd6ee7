"""What runs in Spark cannot read the service: no key in its processes, its settings, its logs or its memory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import boto3
import pytest
from pyspark.sql import SparkSession

from lading.errors import ConfigError, LadingError
from lading.pipeline.environment import cloud_identity, spark_environment
from lading.pipeline.protection import INSECURE, REDACTION, protected
from lading.pipeline.sealing import PROPERTY, SETTING, TO_READ, Sealed, new_key
from lading.settings import lent_variables
from lading.testing.marked import MARK, secret
from tests.guarded_s3 import GuardedStore
from tests.service.conftest import Desk
from tests.service.test_s3_jobs import put, statement
from tests.tables.s3_server import S3Server

CANARY = "a-word-that-is-in-the-memory-of-java"


def descendants(pid: int) -> Iterator[int]:
    yield pid
    with suppress(OSError):  # It ended meanwhile.
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from descendants(int(child))


def known_to(process: int) -> bytes:
    """The environment and the arguments of a process; of one that ended meanwhile, nothing."""
    with suppress(OSError):
        return b"".join(Path(f"/proc/{process}/{name}").read_bytes() for name in ("environ", "cmdline"))
    return b""


def heap_of(spark: SparkSession, path: Path) -> bytes:
    """All that Java has in memory, also what it will throw away."""
    beans = getattr(spark._jvm, "java.lang.management.ManagementFactory")
    server = beans.getPlatformMBeanServer()
    kind = spark._jvm.java.lang.Class.forName("com.sun.management.HotSpotDiagnosticMXBean")  # type: ignore[union-attr]
    bean = beans.newPlatformMXBeanProxy(server, "com.sun.management:type=HotSpotDiagnostic", kind)
    bean.dumpHeap(str(path), False)
    try:
        return path.read_bytes()
    finally:
        path.unlink()


def test_no_key_of_a_job_or_a_table_is_in_spark(desk: Desk, spark: SparkSession, s3: S3Server, tmp_path: Path) -> None:
    bucket = s3.make_bucket()
    keys = {"s3.endpoint": s3.endpoint, "s3.region": "us-east-1", "use_path_style": "true"}
    keys |= {"s3.access_key": secret("table"), "s3.secret_key": secret("table-secret")}
    given = ", ".join(f"'{name}'='{value}'" for name, value in keys.items())
    desk.table(more=f"LOCATION 's3://{bucket}/orders' TBLPROPERTIES({given})")
    put(s3, bucket, "in/a.json", '{"id": 1, "city": "essen", "amount": 1.5}\n{"id": 2, "city": "oslo"}\n')
    desk.sql(statement(s3, bucket))
    desk.run()
    joined = "SELECT count(*) FROM orders a JOIN orders b ON a.id = b.id WHERE a.id < (SELECT max(id) FROM orders) + 1"
    assert desk.sql(joined) == [(2,)]

    java = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    processes = list(descendants(java))
    known = [known_to(process) for process in processes]
    assert len(list(filter(None, known))) > 1  # Java, and at least Spark's Python.
    assert not [each for each in known if MARK.encode() in each]
    settings = dict(spark.sparkContext.getConf().getAll())
    assert MARK not in repr(settings)
    assert settings["spark.authenticate"] == settings["spark.network.crypto.enabled"] == "true"
    assert settings["spark.io.encryption.enabled"] == "true"
    assert not any(spark.sparkContext.getLocalProperty(name) for name in SETTING)

    spark.conf.set("spark.lading.canary", CANARY)
    heap = heap_of(spark, tmp_path / "java.hprof")
    assert CANARY.encode() in heap
    assert MARK.encode() not in heap
    logs = Path(settings["spark.eventLog.dir"].removeprefix("file://")).rglob("*")
    events = "".join(log.read_text() for log in logs if log.is_file() and not log.name.endswith(".crc"))
    for name in (PROPERTY, TO_READ):
        shown = re.findall(rf'"{re.escape(name)}":"([^"]*)"', events)
        assert len(shown) > 3
        assert set(shown) == {"*********(redacted)"}
    assert MARK not in events


def test_a_task_without_keys_is_lent_the_identity_of_the_service(
    desk: Desk, guarded: GuardedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's processes were started without it, and lose it with the task."""
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # It keeps the credentials that it found first.
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", guarded.owner["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", guarded.owner["SecretAccessKey"])
    keys = {name: value for name, value in guarded.properties().items() if not name.endswith("_key")}
    given = ", ".join(f"'{name}'='{value}'" for name, value in keys.items())
    desk.table(more=f"LOCATION 's3://{guarded.bucket}/lent' TBLPROPERTIES({given})")
    desk.put_orders("a.csv", 0, 3)
    desk.create()
    desk.run()
    assert (desk.show("Status"), desk.ids()) == ("RUNNING", [0, 1, 2])
    assert desk.sql("SELECT count(*) FROM orders") == [(3,)]


def test_what_was_lent_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "here")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    with lent_variables({"AWS_REGION": "there", "AWS_PROFILE": "x"}):
        assert (os.environ["AWS_REGION"], os.environ["AWS_PROFILE"]) == ("there", "x")
    assert os.environ["AWS_REGION"] == "here"
    assert "AWS_PROFILE" not in os.environ


def test_spark_is_given_names_of_a_list_and_no_secrets() -> None:
    service = {
        "PATH": "/bin",
        "LC_ALL": "C",
        "SPARK_CONF_DIR": "/etc/spark",
        "SPARK_HISTORY_PASSWORD": "x",
        "PYSPARK_GATEWAY_SECRET": "x",
        "_SPARK_AUTH_SECRET": "x",
        "LADING_SECRET_KEY": "x",
        "LADING_SPARK_ENVIRONMENT": "GDAL_DATA, LADING_SECRET_KEY AWS_SESSION_TOKEN",
        "AWS_SESSION_TOKEN": "x",
        "AWS_REGION": "eu",
        "GDAL_DATA": "/gdal",
        "DB_PASSWORD": "x",
        "https_proxy": "x",
    }
    assert set(spark_environment(service)) == {"PATH", "LC_ALL", "SPARK_CONF_DIR", "GDAL_DATA"}
    assert set(cloud_identity(service)) == {"AWS_SESSION_TOKEN", "AWS_REGION", "https_proxy"}


def test_what_spark_knows_is_no_secret_to_refer_to(desk: Desk, s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_STORE_WORD", secret("given"))
    desk.table()
    with pytest.raises(LadingError, match=r"SPARK_STORE_WORD.* environment of Spark"):
        desk.sql(statement(s3, s3.make_bucket()).replace(secret("nobody-may-see"), "env:SPARK_STORE_WORD"))


def test_protection_is_switched_off_only_on_purpose() -> None:
    assert protected({})["spark.authenticate"] == "true"
    for name in ("spark.authenticate", "spark.network.crypto.enabled", "spark.io.encryption.enabled"):
        with pytest.raises(ConfigError, match=name):
            protected({name: "false"})
        assert protected({name: "false", INSECURE: "true"})[name] == "false"
    with pytest.raises(ConfigError, match="standalone cluster"):
        protected({"spark.master": "spark://cluster:7077"})
    with_file = protected({"spark.master": "spark://cluster:7077", "spark.authenticate.secret.file": "/etc/spark/word"})
    assert with_file["spark.authenticate"] == "true"
    assert protected({REDACTION: "mine"})[REDACTION].endswith("|(?:mine)")


def test_what_is_sealed_cannot_be_read_without_the_key_of_its_job() -> None:
    sealed = Sealed.of({"s3.secret_key": secret("sealed")}, new_key())
    assert MARK.encode() not in sealed.closed
    with pytest.raises(LadingError, match="without the key"):
        sealed.open()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux has /proc")
def test_memory_can_be_closed_to_other_processes_of_the_user() -> None:
    code = """
import ctypes
from lading.pipeline.private_memory import hide_memory
is_open = lambda: ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)
print(is_open(), hide_memory(), is_open())
"""
    asked = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert asked.stdout.split() == ["1", "True", "0"]
