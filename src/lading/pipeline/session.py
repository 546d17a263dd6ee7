"""The Spark session: one per process."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from lading.pipeline.child_output import silence_pyspark
from lading.pipeline.daemon import MODULE
from lading.pipeline.java import Java
from lading.pipeline.tasks import MAX_RECORDS

NO_SUBSTITUTION = "spark.sql.variable.substitute"
"""Spark would put variables of the environment, secrets among them, into every SQL text that says ${env:NAME}."""
DEFAULTS = {
    "spark.master": "local[*]",
    "spark.app.name": "lading",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.scheduler.mode": "FAIR",
    # An executor whose task does not end when it should is replaced. In this process: see `process`.
    "spark.task.reaper.enabled": "true",
    "spark.task.reaper.threadDump": "false",
    "spark.task.reaper.killTimeout": "60s",
    "spark.sql.session.timeZone": "UTC",
    # A load must not die of one bad row: what cannot be computed is NULL, and Lading tells that from a NULL it read.
    "spark.sql.ansi.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(MAX_RECORDS),
    # Spark would add up all columns after every row. Long rows are seen by the reader instead; see `stager`.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.python.daemon.module": MODULE,
    "spark.sql.shuffle.partitions": "2",
    NO_SUBSTITUTION: "false",
}


def open_session(settings: Mapping[str, str], java: Java, home: Path) -> SparkSession:
    """Start Spark with the given `spark.*` settings over the defaults."""
    # Spark's launcher and its Python workers take these from the environment and from nowhere else.
    os.environ["JAVA_HOME"] = java.home
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder
    folder = {"spark.sql.warehouse.dir": str(home / "spark"), "spark.local.dir": str(home / "tmp")}
    options = {**DEFAULTS, **folder, **settings}
    quiet = home / "log4j2.properties"
    if not quiet.exists():
        quiet.parent.mkdir(parents=True, exist_ok=True)
        quiet.write_text(_QUIET)
    options.setdefault("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={quiet}")
    for name, value in options.items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    silence_pyspark()
    return session


_QUIET = """rootLogger.level = error
rootLogger.appenderRef.stdout.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
"""
