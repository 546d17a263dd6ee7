"""The watch for secrets finds what is planted, wherever that is: else its silence would mean nothing."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import logging
import lzma
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import fastavro
import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymysql.connections import Connection
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from lading.errors import LadingError
from lading.service.facade import Lading
from lading.service.security.users import ROOT
from lading.testing.marked import secret
from tests.secret_leaks.buckets import look_at_buckets
from tests.secret_leaks.files import look_at_files
from tests.secret_leaks.hooks import watching
from tests.secret_leaks.pages import Overheard
from tests.secret_leaks.watch import Watch
from tests.tables.s3_server import S3Server

WORD = "pLanted4Them"
"""Not the mark of this run: that one would fail these tests."""


@pytest.fixture
def watch() -> Watch:
    return Watch(WORD)


def found(watch: Watch) -> str:
    return "\n".join(watch.take())


@given(before=st.binary(max_size=8), after=st.binary(max_size=8))
def test_a_word_is_found_as_it_is_and_in_base64(before: bytes, after: bytes) -> None:
    watch = Watch(WORD)
    raw = before + WORD.encode() + after
    assert watch.look(raw, "raw")
    assert watch.look(base64.b64encode(raw), "header")
    assert not watch.look(WORD[:-1].encode(), "something else")
    assert len(watch.take()) == 2


def _parquet(**options: Any) -> bytes:
    sink = io.BytesIO()
    rows = pa.table({"id": range(2000), "said": ["nothing"] * 1999 + [f"key {WORD}"]})
    pq.write_table(rows, sink, **options)
    return sink.getvalue()


def _parquet_metadata() -> bytes:
    sink = io.BytesIO()
    schema = pa.schema([pa.field("id", pa.int64())], metadata={"options": f"key={WORD}"})
    pq.write_table(pa.table({"id": [1]}, schema=schema), sink)
    return sink.getvalue()


def _avro() -> bytes:
    sink = io.BytesIO()
    form = {"type": "record", "name": "m", "fields": [{"name": "said", "type": "string"}]}
    fastavro.writer(sink, form, [{"said": "x" * 500}, {"said": f"key {WORD}"}] * 50, codec="deflate")
    return sink.getvalue()


def _sqlite() -> bytes:
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE t (said TEXT)")
        # A text of many pages: somewhere in it the word is cut in two.
        database.execute("INSERT INTO t VALUES (?)", ("-".join([WORD] * 4000),))
        return bytes(database.serialize())


def _zip() -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a.txt", f"{WORD} " * 50)
    return sink.getvalue()


@pytest.mark.parametrize(
    "pack",
    [
        lambda: f"key={WORD}".encode(),
        lambda: _parquet(compression="zstd"),
        lambda: _parquet(compression="zstd", use_dictionary=False),
        lambda: _parquet(compression="none", use_dictionary=False, column_encoding={"said": "DELTA_BYTE_ARRAY"}),
        _parquet_metadata,
        _avro,
        _sqlite,
        _zip,
        lambda: gzip.compress(WORD.encode() * 50),
        lambda: bz2.compress(WORD.encode() * 50),
        lambda: lzma.compress(WORD.encode() * 50),
        lambda: pa.compress(WORD.encode() * 50, codec="zstd", asbytes=True),
    ],
)
def test_a_word_in_a_file_is_found(pack: Callable[[], bytes], watch: Watch, tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "file").write_bytes(pack())
    (tmp_path / "harmless").write_bytes(b"PAR1 but no table")
    assert look_at_files(tmp_path, watch) == 2
    assert str(tmp_path / "deep" / "er" / "file") in found(watch)


def test_a_word_in_the_name_of_a_file_is_found(watch: Watch, tmp_path: Path) -> None:
    (tmp_path / f"a-{WORD}.csv").touch()
    look_at_files(tmp_path, watch)
    assert WORD in found(watch)


def test_a_word_in_a_bucket_is_found(watch: Watch, s3: S3Server) -> None:
    keys = {"aws_access_key_id": secret("owner"), "aws_secret_access_key": secret("owner")}
    store = boto3.client("s3", endpoint_url=s3.endpoint, region_name="us-east-1", **keys)
    bucket = s3.make_bucket()
    store.put_object(Bucket=bucket, Key="a/b.gz", Body=gzip.compress(WORD.encode() * 50))
    assert look_at_buckets(s3, watch) > 0
    assert f"s3://{bucket}/a/b.gz" in found(watch).replace("s3:/", "s3://").replace("///", "//")


def test_words_in_logs_are_found(watch: Watch) -> None:
    log = logging.getLogger("lading.somewhere")
    with watching(watch):
        log.error("said %s", WORD)
        assert "log lading.somewhere" in found(watch)
        try:
            raise ValueError(WORD)
        except ValueError:
            log.exception("failed")
        assert "log lading.somewhere" in found(watch)
    log.error("not heard: %s", WORD)
    assert not found(watch)


def test_words_in_answers_and_errors_of_the_facade_are_found(watch: Watch, tmp_path: Path) -> None:
    with watching(watch), Lading(tmp_path / "home") as lading:
        lading.sql(f"CREATE DATABASE {WORD}")
        assert not found(watch)
        lading.sql("SHOW DATABASES")
        assert "answer to " in found(watch)
        for text in (f"USE no{WORD}", f"CREATE {WORD}"):
            with pytest.raises(LadingError):
                lading.sql(text)
            assert "error, answer to " in found(watch)


def test_a_secret_that_nobody_could_find_is_told(watch: Watch, tmp_path: Path) -> None:
    with watching(watch), Lading(tmp_path / "home") as lading:
        lading.access.create_user("ann", secret("known elsewhere"), by=ROOT)
        assert "password of ann" in found(watch)
        lading.access.set_password("ann", f"{WORD}-{secret('both')}", by=ROOT)
        assert not found(watch)
        text = f"""CREATE JOB j ON STREAMING DO INSERT INTO t SELECT * FROM
            S3("uri"="s3://b/*.csv", "format"="csv", "s3.secret_key"="{secret("else")}")"""
        with pytest.raises(LadingError):
            lading.sql(text)
        assert "property s3.secret_key" in found(watch)


def test_words_in_answers_of_http_are_found(watch: Watch) -> None:
    shown = httpx.MockTransport(lambda request: httpx.Response(200, text=f"key {WORD}"))
    headed = httpx.MockTransport(lambda request: httpx.Response(200, headers={"x-key": WORD}))
    with watching(watch):
        for transport, where in ((shown, "answer to GET /a"), (headed, "headers of GET /a")):
            with httpx.Client(transport=transport) as client:
                client.get("http://service/a")
            assert where in found(watch)


async def _app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        packed = scope["path"] == "/packed"
        await send({"type": "http.response.start", "status": 200, "headers": []})
        body = gzip.compress(WORD.encode() * 9) if packed else WORD.encode()
        await send({"type": "http.response.body", "body": body[:5], "more_body": True})
        await send({"type": "http.response.body", "body": body[5:]})
    elif scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await receive()
        await send({"type": "websocket.send", "text": f"key {WORD}"})
        await send({"type": "websocket.close"})


def test_words_in_pages_and_frames_are_found(watch: Watch) -> None:
    with watching(watch):
        TestClient(_app).get("/plain")
        assert "answer to GET /plain" in found(watch)
    client = TestClient(Overheard(_app, watch))
    for path in ("/plain", "/packed"):
        client.get(path)
        assert f"http {path}" in found(watch)
    with client.websocket_connect("/live") as live:
        live.send_text("what was typed")
        live.receive_text()
    assert "frame of websocket /live" in found(watch)


def test_words_in_packets_are_found(watch: Watch) -> None:
    wire = SimpleNamespace(_read_timeout=None, _sock=SimpleNamespace(settimeout=lambda seconds: None))
    wire._rfile = io.BytesIO(f"0123{WORD}".encode())
    with watching(watch):
        Connection._read_bytes(wire, 4)
        assert not found(watch)
        Connection._read_bytes(wire, len(WORD))
        assert "packet of MySQL" in found(watch)


def test_words_that_commands_print_are_found(watch: Watch) -> None:
    with watching(watch):
        code = f"import sys; print('{WORD}', file=sys.stderr)"
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "errors of " in found(watch)
