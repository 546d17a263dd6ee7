"""Brokers for tests: a real Apache Kafka that can be killed, and librdkafka's mock cluster for quick ones.

The real one is one node that is its own controller. LADING_TEST_KAFKA names the bootstrap servers of one that runs
already, or the folder of an unpacked Kafka; without it the jars come from Maven, once, into the user's cache folder.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lading.clock import SystemClock
from lading.testing.marked import secret
from tests.support.certificates import self_signed
from tests.support.maven import JarsMissingError, find_jars

KAFKA_VERSION = "3.9.1"
KAFKA_USER, KAFKA_PASSWORD = "alice", secret("sesame")
"""Who may sign in where `KafkaBroker.secure_bootstrap` listens."""
_CLUSTER_ID = "TGFkaW5nVGVzdEthZmthMQ"
_START_S = 60.0
_ARTIFACTS = (f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}", "org.slf4j:slf4j-simple:1.7.36")
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{secure},BEHIND://127.0.0.1:{behind},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{secure},BEHIND://127.0.0.1:{before}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,BEHIND:PLAINTEXT,SASL_SSL:SASL_SSL
ssl.keystore.type=PEM
ssl.keystore.location={keystore}
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
  user_{user}="{password}";
log.dirs={data}
auto.create.topics.enable=false
message.max.bytes=20000000
replica.fetch.max.bytes=20000000
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=1000
broker.heartbeat.interval.ms=200
initial.broker.registration.timeout.ms=60000
controller.quorum.election.timeout.ms=300
controller.quorum.fetch.timeout.ms=500
log.cleaner.backoff.ms=100
log.retention.check.interval.ms=500
file.delete.delay.ms=0
"""


class KafkaMissingError(RuntimeError):
    """This machine has no Kafka and no way to get one."""


def find_kafka_jars() -> Path:
    """A folder with Kafka's jars. Raises KafkaMissingError with what is missing."""
    if shutil.which("java") is None:
        msg = "Kafka cannot be started: there is no java on the path"
        raise KafkaMissingError(msg)
    if home := os.environ.get("LADING_TEST_KAFKA"):
        return Path(home) / "libs"
    try:
        return find_jars(f"kafka-{KAFKA_VERSION}", _ARTIFACTS)
    except JarsMissingError as missing:
        msg = f"{missing}; LADING_TEST_KAFKA can name an unpacked Apache Kafka"
        raise KafkaMissingError(msg) from missing


class KafkaBroker:
    """One real broker. What it was told stays on disk when it is killed."""

    def __init__(self, jars: Path, folder: Path) -> None:
        self._jars = jars
        self._folder = folder
        self._port, secure, controller, self.behind_port, self.proxy_port = free_ports(5)
        # Clients that come to `behind_port` are sent to `proxy_port`, where a test may have a proxy.
        self.bootstrap = f"127.0.0.1:{self._port}"
        self.secure_bootstrap = f"127.0.0.1:{secure}"
        """SASL_SSL with the mechanism PLAIN."""
        signed = self_signed(folder)
        self.certificate = signed.certificate
        self._process: subprocess.Popen[bytes] | None = None
        self._properties = folder / "server.properties"
        self._properties.write_text(
            _PROPERTIES.format(
                port=self._port,
                secure=secure,
                controller=controller,
                behind=self.behind_port,
                before=self.proxy_port,
                data=folder / "data",
                keystore=signed.both,
                user=KAFKA_USER,
                password=KAFKA_PASSWORD,
            )
        )
        told = self._java("kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(self._properties))
        subprocess.run(told, capture_output=True, timeout=_START_S, check=True)

    @property
    def is_ours(self) -> bool:
        """Whether it may be killed."""
        return True

    def start(self) -> None:
        """Start, and wait until it answers."""
        with (self._folder / "server.log").open("ab") as log:
            command = self._java("kafka.Kafka", str(self._properties))
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        clock = SystemClock()
        until_s = clock.monotonic_s() + _START_S
        while not self._answers():
            if self._process.poll() is not None or clock.monotonic_s() > until_s:
                msg = f"Kafka did not start:\n{(self._folder / 'server.log').read_text()[-2000:]}"
                raise RuntimeError(msg)
            clock.sleep(0.1)

    def kill(self) -> None:
        """SIGKILL: no goodbye, no flush."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def admin(self) -> Any:
        """A client to make and change topics with."""
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def _java(self, *rest: str) -> list[str]:
        options = ["-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        quiet = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        return ["java", *options, *quiet, "-cp", str(self._jars / "*"), *rest]

    def _answers(self) -> bool:
        from confluent_kafka import KafkaException

        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=1):
                pass
            return bool(self.admin().list_topics(timeout=2).brokers)
        except (OSError, KafkaException):
            return False


class ForeignKafka(KafkaBroker):
    """A cluster that somebody else runs: it is used, and neither killed nor started."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    @property
    def is_ours(self) -> bool:
        return False

    def start(self) -> None:
        raise _not_ours(self.bootstrap)

    def kill(self) -> None:
        raise _not_ours(self.bootstrap)


def _not_ours(bootstrap: str) -> KafkaMissingError:
    return KafkaMissingError(f"The Kafka at {bootstrap} belongs to somebody else and may not be killed")


@contextmanager
def serve_kafka() -> Iterator[KafkaBroker]:
    """A broker with a folder of its own, or the one that LADING_TEST_KAFKA names. Raises KafkaMissingError."""
    named = os.environ.get("LADING_TEST_KAFKA", "")
    if named and not Path(named).is_dir():
        yield ForeignKafka(named)
        return
    jars = find_kafka_jars()
    with tempfile.TemporaryDirectory(prefix="lading-kafka-", ignore_cleanup_errors=True) as folder:
        broker = KafkaBroker(jars, Path(folder))
        try:
            broker.start()
            yield broker
        finally:
            broker.kill()


class MockKafka:
    """librdkafka's own imitation: quick, makes topics by itself, has no controller, no transactions that abort."""

    def __init__(self) -> None:
        from confluent_kafka import Producer

        self.producer = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0})
        brokers = self.producer.list_topics(timeout=10).brokers.values()
        self.bootstrap = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on at this moment."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
