"""The Spark session: one per process."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from lading.pipeline.answering import DEFAULT_S, SILENCE, watch_answers
from lading.pipeline.child_output import silence_pyspark
from lading.pipeline.cluster import executor_python, executor_settings, is_local_master, is_near, with_secret
from lading.pipeline.daemon import MODULE
from lading.pipeline.environment import spark_environment
from lading.pipeline.gateway import Launch, launch_java
from lading.pipeline.java import Java
from lading.pipeline.protection import protected
from lading.pipeline.sealing import SETTING
from lading.pipeline.tasks import MAX_RECORDS
from lading.settings import environment, set_variables

NO_SUBSTITUTION = "spark.sql.variable.substitute"
"""Spark would put variables of the environment, secrets among them, into every SQL text that says ${env:NAME}."""
LAST_KEYS = "spark.sql.variant.allowDuplicateKeys"
"""Of a key that stands twice in an object of JSON the last one counts, as wherever Lading reads JSON. Without it, a
path into such an object is NULL."""
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
    LAST_KEYS: "true",
}
SMALL_CORES = 4
_JAVA_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_NEAR = ("spark.driver.host", "spark.driver.bindAddress")
"""Where executors look for this machine: Spark finds out what it is called in the network."""


def open_session(
    settings: Mapping[str, str],
    java: Java,
    home: Path,
    *,
    variables: Mapping[str, str] | None = None,
    launch: Mapping[str, Any] | None = None,
    archives: Path | None = None,
) -> SparkSession:
    """Start Spark with the given `spark.*` settings over the defaults, or use what runs in this process already.

    `variables` is the environment of the service, of which Spark is given what `environment` allows. `archives`: where
    the archive for executors is kept; in the home when left out.
    """
    known = environment() if variables is None else variables
    options = _options(settings, home, archives or home)
    options = {**options, **_collector(settings, options, known)}
    is_remote = not is_local_master(options["spark.master"])
    python = executor_python(settings, known) if is_remote else sys.executable
    # What PySpark in this process reads; Spark's own processes have an environment of their own.
    set_variables({"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": sys.executable})
    with SparkContext._lock:  # noqa: SLF001 - no public way to ask
        is_running, gateway = SparkContext._active_spark_context is not None, SparkContext._gateway  # noqa: SLF001
    if is_running:
        return SparkSession.builder.getOrCreate()
    if gateway is None:
        own = {"JAVA_HOME": java.home, "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": sys.executable}
        near = {"SPARK_LOCAL_IP": "127.0.0.1"} if is_near(options["spark.master"]) else {}
        # Executors elsewhere have folders of their own for what they spill.
        given = {**near, **({"SPARK_LOCAL_DIRS": str(home / "tmp")} if is_remote else {}), **spark_environment(known)}
        gateway = launch_java(Launch(options=options, environment={**given, **own}, **(launch or {})))
        watch_answers(gateway, float(options.get(SILENCE, DEFAULT_S)))
    conf = SparkConf(_jvm=gateway.jvm)
    for name, value in options.items():
        conf.set(name, value)
    session = SparkSession(SparkContext(conf=conf, gateway=gateway))
    session.sparkContext.setLogLevel("ERROR")
    silence_pyspark()
    return session


def is_local(session: SparkSession) -> bool:
    """Whether tasks run in the process that was started here, and not on other machines."""
    return is_local_master(str(session.sparkContext.master))


def _options(settings: Mapping[str, str], home: Path, archives: Path) -> dict[str, str]:
    """All settings, those of the user over ours."""
    master = settings.get("spark.master", DEFAULTS["spark.master"])
    given = protected(with_secret(settings))
    if is_local_master(master):
        return {**DEFAULTS, **_folders(home), **given, **SETTING}
    own = {name: value for name, value in _folders(home).items() if name != "spark.local.dir"}
    defaults = DEFAULTS if is_near(master) else {n: v for n, v in DEFAULTS.items() if n not in _NEAR}
    return {**defaults, **own, **given, **executor_settings(settings, archives), **SETTING}


def _collector(given: Mapping[str, str], options: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    """On a small machine, with the memory that Lading gives it, Java takes half of the memory for the same work when it
    collects garbage in one thread. Not beside another choice: Java refuses two."""
    name = "spark.driver.extraJavaOptions"
    others = [
        *(text for key, text in given.items() if key.endswith("JavaOptions")),
        *map(variables.get, _JAVA_VARIABLES),
    ]
    is_chosen = any("GC" in text for text in others if text)
    if is_chosen or "spark.driver.memory" in given or (os.cpu_count() or 1) > SMALL_CORES:
        return {}
    return {name: f"{options[name]} -XX:+UseSerialGC"}


def _folders(home: Path) -> dict[str, str]:
    quiet = home / "log4j2.properties"
    if not quiet.exists():
        quiet.parent.mkdir(parents=True, exist_ok=True)
        quiet.write_text(_QUIET)
    return {
        "spark.sql.warehouse.dir": str(home / "spark"),
        "spark.local.dir": str(home / "tmp"),
        "spark.driver.extraJavaOptions": f'"-Dlog4j2.configurationFile={quiet}"',
    }


_QUIET = """rootLogger.level = error
rootLogger.appenderRef.stdout.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %X{mdc.lading_query} %c{1}: %m%n
"""
