"""Whatever writes to standard error, in whichever way: lines of the log, without secrets."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys

import pytest

from lading.pipeline.child_output import LONGEST, log_lines
from lading.service.security.log_output import redact_logger
from lading.service.security.redaction import HIDDEN
from lading.service.spark_queries.worker import Verdicts, hear
from lading.service.telemetry.logs import JsonLines, TextLines
from lading.testing.marked import MARK, secret

TROUBLE = """
import asyncio, gc, logging, os, subprocess, sys, threading, traceback, warnings
from lading.service.security.redaction import HIDDEN
from lading.service.telemetry.logs import LogFormat, set_up_logs
from lading.service.security.log_output import close_stdout

KEY = os.environ["KEY"]
PEM = "-----BEGIN KEY-----\\n" + KEY + "-of-the-pem\\n-----END KEY-----\\n"
HIDDEN.learn([KEY, PEM])
set_up_logs(LogFormat(sys.argv[1]), is_service=True)
print("ready", flush=True)
close_stdout()

def fail(what):
    raise RuntimeError(f"{what} with {KEY}")

def tell_thread():
    thread = threading.Thread(target=fail, args=("in a thread",), name="worker")
    thread.start(); thread.join()

class Broken:
    def __del__(self):
        fail("in a finalizer")

async def lost():
    asyncio.get_running_loop().create_task(asyncio.sleep(0)).add_done_callback(lambda _: fail("in a callback"))
    await asyncio.sleep(0.01)

tell_thread()
Broken(); gc.collect()
os.write(2, f"%3|1700000000|FAIL|rdkafka#1| native with {KEY}\\n".encode())
os.write(2, b"\\xff\\xfe not text\\n")
subprocess.run([sys.executable, "-c", "import os, sys; sys.stderr.write('child says ' + os.environ['PEM'])"],
               env={"PEM": PEM}, check=True)
print("printed late", KEY, flush=True)
warnings.warn(f"a warning with {KEY}")
asyncio.run(lost())
logging.getLogger("urllib3").warning("a library with %s", KEY)
logging.getLogger("some.library").error("%d is no number", KEY)
logging.getLogger("lading.x").info("two\\nlines\\x1b[31m \\u2028 of %s", KEY, extra={"job": KEY})
try:
    fail("caught")
except RuntimeError:
    traceback.print_exc()
from pyspark.logger import PySparkLogger
PySparkLogger.getLogger("SQLQueryContextLogger").warning("query with " + KEY, errorClass=KEY)
fail("at the end")
"""


def run_trouble(form: str) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "KEY": secret("log-output")}
    return subprocess.run([sys.executable, "-c", TROUBLE, form], capture_output=True, env=environment, check=False)


def test_every_line_on_standard_error_is_json_without_secrets() -> None:
    ended = run_trouble("json")
    assert (ended.returncode, ended.stdout) == (1, b"ready\n"), ended.stderr
    records = [json.loads(line) for line in ended.stderr.decode().splitlines()]
    said = "\n".join(f"{record['message']} {record.get('error', '')}" for record in records)
    assert MARK not in ended.stderr.decode()
    for words in (
        "Thread worker ended with an error",
        "RuntimeError: in a thread with ******",
        "RuntimeError: in a finalizer with ******",
        "rdkafka#1| native with ******",
        "not text",
        "child says -----BEGIN KEY-----",
        "printed late ******",
        "UserWarning: a warning with ******",
        "RuntimeError: in a callback with ******",
        "a library with ******",
        "could not be formatted: TypeError",
        "RuntimeError: caught with ******",
        "query with ******",
        "RuntimeError: at the end with ******",
    ):
        assert words in said, f"{words} is not in:\n{said}"
    assert next(record for record in records if record["logger"] == "lading.x")["job"] == "******"


def test_a_message_cannot_pass_for_another_record() -> None:
    ended = run_trouble("text")
    assert MARK.encode() not in ended.stderr
    lines = ended.stderr.decode().splitlines()
    assert [line for line in lines if not line.startswith(("20", "    "))] == []
    assert any("two" in line and "lines" not in line for line in lines)
    assert b"\x1b" not in ended.stderr


def test_a_line_without_end_is_cut_and_no_half_of_a_secret_is_shown(caplog: pytest.LogCaptureFixture) -> None:
    key = secret("cut-in-half")
    HIDDEN.learn([key])
    reading, writing = os.pipe()
    pipe = os.fstat(reading).st_ino
    thread = log_lines(reading, logging.getLogger("lading.test_lines"))
    with os.fdopen(writing, "wb") as stream:
        stream.write((key * 6000).encode() + b"\nnext\n")
    thread.join(60)
    long, after = caplog.records
    assert after.getMessage() == "next"
    for form in (JsonLines(), TextLines()):
        shown = form.format(long)
        assert len(shown) < LONGEST + 200
        assert MARK[:4] not in shown
    try:
        # Its number may be that of a file which another thread has opened since.
        is_open = os.fstat(reading).st_ino == pipe
    except OSError:
        is_open = False
    assert not is_open


def test_what_java_and_spark_say_at_every_start_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    reading, writing = os.pipe()
    thread = log_lines(reading, logging.getLogger("lading.test_greetings"))
    with os.fdopen(writing, "wb") as stream:
        stream.write(b"WARNING: Using incubator modules: jdk.incubator.vector\n")
        stream.write(b'Setting default log level to "WARN".\nWARNING: something else\n')
    thread.join(60)
    assert [record.getMessage() for record in caplog.records] == ["WARNING: something else"]


def test_nor_does_a_query_on_a_terminal_begin_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as stream:
        stream.write(
            b"WARNING: Using incubator modules: jdk.incubator.vector\nTo adjust logging level use sc.setLogLevel(\n"
        )
        stream.write(b"java.lang.OutOfMemoryError: Java heap space\n")
    verdicts = Verdicts()
    hear(reading, verdicts)
    assert capsys.readouterr().err == "java.lang.OutOfMemoryError: Java heap space\n"
    assert verdicts.is_memory


def test_what_java_writes_is_redacted_also_for_programs_with_logs_of_their_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    key = secret("said-by-java")
    HIDDEN.learn([key])
    redact_logger("lading.test_java")
    redact_logger("lading.test_java")
    logging.getLogger("lading.test_java").warning("Exception for %s", key)
    assert caplog.messages == ["Exception for ******"]
    assert len(logging.getLogger("lading.test_java").filters) == 1


@pytest.mark.parametrize("write", [json.dumps, repr], ids=["json", "python"])
def test_a_secret_is_known_also_as_others_escape_it(write: object) -> None:
    key = f'a"b\\c\n{secret("escaped")}\tä/+ &'
    HIDDEN.learn([key])
    assert callable(write)
    assert MARK not in HIDDEN.redact(f"they gave us {write(key)}")
