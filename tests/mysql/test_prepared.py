"""Prepared statements: the binary protocol, and parameters that become literals."""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.mysql.protocol.packets import Reader
from lading.mysql.protocol.parameters import Prepared
from lading.mysql.protocol.statement_text import cut, fill, question_marks
from lading.mysql.protocol.values import binary_row, heads_of, text_of, text_row
from lading.mysql.server import MysqlServer
from lading.service.result import Result
from lading.sql.syntax.tokens import Kind, tokenize
from tests.mysql.raw import DEPRECATE_EOF, Raw, code_of, encode


def bound(text: str, *values: object) -> str:
    """A statement as the server runs it."""
    kinds, data, nulls = b"", b"", bytearray((len(values) + 7) // 8)
    for at, value in enumerate(values):
        kind, encoded = encode(value)
        kinds, data = kinds + kind, data + encoded
        if value is None:
            nulls[at // 8] |= 1 << (at % 8)
    return Prepared(number=1, text=text).bound(Reader(bytes(nulls) + b"\1" + kinds + data), "utf-8", 1 << 20)


@given(st.text())
def test_a_string_parameter_is_one_literal_with_the_same_content(value: str) -> None:
    text = bound("SELECT ? AS x", value)
    tokens = tokenize(text)
    assert [token.kind for token in tokens] == [Kind.WORD, Kind.STRING, Kind.WORD, Kind.WORD, Kind.END]
    if "\\" not in value:  # `\%`, `\_` and `\x` keep their backslash in Lading's SQL, as everywhere
        assert tokens[1].value == value


@given(
    st.lists(
        st.one_of(
            st.none(), st.integers(-(2**63), 2**63 - 1), st.text(), st.floats(allow_nan=False, allow_infinity=False)
        )
    )
)
def test_no_parameter_reaches_out_of_its_place(values: list[object]) -> None:
    marks = ", ".join("?" for _ in values)
    text = bound(f"F({marks})", *values)
    tokens = tokenize(text)
    assert sum(token.is_symbol(",") for token in tokens) == max(0, len(values) - 1)
    assert tokens[-2].is_symbol(")")
    assert len(cut(text)) == 1


def test_question_marks_in_strings_names_and_comments_are_no_parameters() -> None:
    text = "SELECT '?', \"?\", `?`, ? -- ?\n, ? # ?\n /* ? */ FROM t WHERE a = 'it''s ?' AND b = ?"
    assert len(question_marks(text)) == 3
    assert fill("a = ? AND b = ?", question_marks("a = ? AND b = ?"), ["'?'", "2"]) == "a = '?' AND b = 2"


def test_two_minus_signs_do_not_become_a_comment() -> None:
    assert "--" not in bound("SELECT 5-?", -3)


@given(st.text(alphabet="ab;'\"`\\\n -#/*?"))
def test_cutting_keeps_every_letter_but_the_semicolons_between(text: str) -> None:
    parts = cut(text)
    assert all(part in text for part in parts)
    assert [p for part in parts for p in cut(part)] == parts


def test_statements_with_parameters_are_answered(server: MysqlServer) -> None:
    with Raw(server.port) as client:
        assert client.login()[:1] == b"\0"
        statement, parameters = client.prepare("SELECT ?, ?, ?, ?")
        assert parameters == 4
        *_, row = client.execute(statement, 7, "it's ? \\ ;", None, 2.5)
        assert struct.unpack_from("<q", row, 2)[0] == 7
        assert b"it's ? \\ ;" in row
        assert row.endswith(struct.pack("<d", 2.5))
        *_, again = client.execute(statement, -1, "", "x", 0.5)
        assert struct.unpack_from("<q", again, 2)[0] == -1


def test_jobs_can_be_asked_for_with_parameters(server: MysqlServer) -> None:
    with Raw(server.port) as client:
        client.login()
        statement, _ = client.prepare('SELECT COUNT(*) AS n FROM jobs("type"="insert") WHERE Name = ? OR Name LIKE ?')
        *_, row = client.execute(statement, "x' OR '1'='1", "%'; DROP")
        assert struct.unpack_from("<q", row, 2)[0] == 0


def test_long_parameters_come_in_pieces(server: MysqlServer) -> None:
    with Raw(server.port) as client:
        client.login()
        statement, _ = client.prepare("SELECT ?")
        for piece in (b"one ", b"two"):
            client.command(0x18, struct.pack("<IH", statement, 0) + piece)
        client.command(0x17, struct.pack("<IBI", statement, 0, 1) + b"\0\1\xfd\0")
        assert client.answer()[-1].endswith(b"\x07one two")


def test_statements_that_are_not_there_are_refused(server: MysqlServer) -> None:
    with Raw(server.port) as client:
        client.login()
        assert code_of(client.execute(99)[0]) == 1243
        statement, _ = client.prepare("SELECT ?")
        client.command(0x19, statement.to_bytes(4, "little"))
        assert code_of(client.execute(statement, 1)[0]) == 1243
        statement, _ = client.prepare("SELECT ?")
        client.command(0x17, struct.pack("<IBI", statement, 0, 1) + b"\0")
        assert code_of(client.answer()[0]) == 1835


def test_a_connection_cannot_prepare_without_end(server: MysqlServer) -> None:
    with Raw(server.port) as client:
        client.login()
        for _ in range(1000):
            client.prepare("SELECT 1")
        client.command(0x16, b"SELECT 1")
        assert code_of(client.read()) == 1461
        client.command(0x1F)
        assert client.read()[:1] == b"\0"
        client.prepare("SELECT 1")


def test_clients_that_want_no_eof_get_one_all_the_same(server: MysqlServer) -> None:
    """It is not offered: Connector/J would wait for ever after an empty result of a prepared statement."""
    with Raw(server.port) as client:
        client.login(extra=DEPRECATE_EOF)
        assert client.query("SELECT 1, 2")[-1] == b"\x011\x012"
        assert client.query("SHOW PLUGINS")[0] == b"\x05"


def test_rows_are_fetched_little_by_little_with_a_cursor(server: MysqlServer) -> None:
    with Raw(server.port) as client:
        client.login()
        statement, _ = client.prepare("SELECT collation_name FROM information_schema.collations")
        client.command(0x17, struct.pack("<IBI", statement, 1, 1))
        assert client.read() == b"\x01"
        client.read()
        assert client.read()[3] & 0x40
        found = 0
        while True:
            client.command(0x1C, struct.pack("<II", statement, 4))
            while (packet := client.read())[:1] == b"\0":
                found += 1
            if packet[3] & 0x80:
                break
        assert found == 6
        client.command(0x1C, struct.pack("<II", statement, 4))
        assert code_of(client.read()) == 1421


VALUES = [
    (True, "1"),
    (3, "3"),
    (1.5, "1.5"),
    (Decimal("1.50"), "1.50"),
    (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02 03:04:05"),
    (datetime(2026, 1, 2, 3, 4, 5, 6), "2026-01-02 03:04:05.000006"),  # noqa: DTZ001 - MySQL knows no zones
    (date(2026, 1, 2), "2026-01-02"),
    (timedelta(hours=-30, microseconds=1), "-29:59:59.999999"),
    (["a", {"b": 1}], '["a", {"b": 1}]'),
    ({date(2026, 1, 2): {"b": [1]}}, '{"2026-01-02": {"b": [1]}}'),
    ("ü", "ü"),
]


@pytest.mark.parametrize(("value", "text"), VALUES, ids=lambda each: type(each).__name__)
def test_values_as_text(value: object, text: str) -> None:
    assert text_of(value) == text
    assert text_row([value, None], "utf-8") == bytes([len(text.encode())]) + text.encode() + b"\xfb"


def test_columns_of_mixed_values_are_text_and_large_numbers_are_decimals() -> None:
    result = Result(columns=("a", "b", "c", "d"), rows=((1, 2**70, 1, None), ("x", 1, 0.5, None)))
    names = [head.type.name for head in heads_of(result, 45)]
    assert names == ["VAR_STRING", "NEWDECIMAL", "DOUBLE", "VAR_STRING"]


def test_binary_rows_mark_nulls() -> None:
    result = Result(columns=tuple("abcdefgh"), rows=((None,) * 7 + (1,),))
    row = binary_row(result.rows[0], heads_of(result, 45), "utf-8")
    assert row == b"\0" + bytes([0b1111_1100, 0b0000_0001]) + struct.pack("<q", 1)
