"""Fetches the servers and jars that `make test` needs, while it runs what needs none; once on each machine.

    python -m tests.support.fetch

A test that comes before its jars waits for them. What cannot be fetched is said by the test that is skipped for it.
"""

from __future__ import annotations

from contextlib import suppress
from subprocess import SubprocessError

from lading.errors import ConfigError
from lading.testing.kinesis.server import installed_package
from lading.testing.npm import installed
from tests.mysql.test_jdbc import DRIVERS
from tests.support import oidc_server
from tests.support.hive_metastore import NEW
from tests.support.jvm_engine import JARS
from tests.support.kafka_broker import KafkaMissingError, find_kafka_jars
from tests.support.maven import JarsMissingError, find_jars
from tests.support.rest_catalog import ARTIFACTS, VERSION
from tests.tables.test_paimon_java import BUNDLE

WANTED = (
    (f"iceberg-rest-{VERSION}", ARTIFACTS),
    (f"hive-metastore-{NEW.version}", NEW.artifacts),
    ("spark-4.1-engines", JARS),
    ("jdbc-1", DRIVERS),
    ("paimon-1.4.2", BUNDLE),
)
"""In the order in which they are asked for."""


def main() -> None:
    with suppress(ConfigError, OSError):
        installed_package()
        installed("oidc-provider", oidc_server.VERSION)
    with suppress(KafkaMissingError, SubprocessError):
        find_kafka_jars()
    for name, artifacts in WANTED:
        with suppress(JarsMissingError, SubprocessError):
            find_jars(name, artifacts)


if __name__ == "__main__":
    main()
