"""One bad file does not stop those behind it, where the job says so: from the statement to the table."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl

from tests.service.conftest import Desk

JOB = """CREATE JOB j PROPERTIES("file.on_error"="{word}") ON STREAMING DO INSERT INTO orders SELECT *
FROM FILE("uri"="{inbox}/*", "format"="csv_with_names", "column_separator"=",")"""


def create(desk: Desk, word: str) -> None:
    desk.table()
    desk.sql(JOB.format(word=word, inbox=desk.inbox))


def packed(first: int, count: int = 10) -> bytes:
    rows = [f"{order},essen,1.50" for order in range(first, first + count)]
    return gzip.compress("\n".join(["id,city,amount", *rows, ""]).encode())


def put_bytes(desk: Desk, name: str, content: bytes) -> None:
    draft = desk.path / f"{name}.draft"
    draft.write_bytes(content)
    draft.rename(desk.inbox / name)


def ids(desk: Desk) -> list[int]:
    """As another reader sees them."""
    place = desk.lading.catalog.open_table("shop", "orders").writer_spec().location
    return sorted(pl.read_delta(str(Path(place.removeprefix("file://"))))["id"].to_list())


def test_files_that_cannot_be_read_are_put_aside_and_loaded_once_they_are_repaired(desk: Desk) -> None:
    put_bytes(desk, "0.csv.gz", packed(0)[:-9])
    for number in (1, 2, 4):
        desk.put_orders(f"{number}.csv", number * 10, 10)
    put_bytes(desk, "3.csv", b"id,\xff\xfe,amount\n1,essen,1.50\n")
    create(desk, "SKIP")
    desk.run()
    good = [*range(10, 30), *range(40, 50)]
    assert (desk.show("Status"), ids(desk)) == ("RUNNING", good)
    errors = desk.sql("SHOW LOAD ERRORS FOR j")
    assert [(str(row[1]).rpartition("/")[2], row[2]) for row in errors] == [("3.csv", 0), ("0.csv.gz", 0)]
    assert "3.csv cannot be read: the line with its column names is not UTF-8" in str(errors[0])
    assert "0.csv.gz cannot be read: Truncated compressed stream" in str(errors[1])
    assert "not loaded: 2 files put aside because they could not be read" in desk.show("JobRuntimeMsg")
    put = [row[4] for row in desk.sql("SHOW LOAD AUDIT FOR j") if row[2] == "QUARANTINE"]
    assert ["0.csv.gz" in str(put[1]), "3.csv" in str(put[0])] == [True, True]
    desk.restart()
    put_bytes(desk, "0.csv.gz", packed(0))
    desk.run()
    assert (desk.show("Status"), ids(desk)) == ("RUNNING", [*range(10), *good])
    assert "1 file put aside because it could not be read" in desk.show("JobRuntimeMsg")
    assert desk.lading.verify("j").is_clean


def test_otherwise_it_stops_the_job_until_the_file_is_left_out_or_replaced(desk: Desk) -> None:
    desk.put_orders("1.csv", 10, 10)
    put_bytes(desk, "2.csv.gz", packed(20)[:-9])
    desk.put_orders("3.csv", 30, 10)
    create(desk, "PAUSE")
    desk.run()
    assert (desk.show("Status"), ids(desk)) == ("PAUSED", [])
    assert "2.csv.gz cannot be read" in desk.show("ErrorMsg")
    desk.sql("SKIP FILE '2.csv.gz' FOR JOB j; RESUME JOB j")
    desk.run()
    rest = [*range(10, 20), *range(30, 40)]
    assert (desk.show("Status"), ids(desk)) == ("RUNNING", rest)
    put_bytes(desk, "2.csv.gz", packed(20))
    desk.run()
    assert ids(desk) == rest, "it is not read, whatever is in it"
    desk.sql("PAUSE JOB j; LOAD FILE '2.csv.gz' FOR JOB j; RESUME JOB j")
    desk.run()
    desk.run()
    assert ids(desk) == list(range(10, 40))
    assert desk.lading.verify("j").is_clean


def test_the_bad_rows_of_a_refused_batch_are_shown_all_of_them(desk: Desk) -> None:
    desk.table()
    for number in range(2):
        desk.put(f"{number}.csv", [f"{'bad' if row % 3 == 0 else row},essen,1.50" for row in range(300)])
    desk.create()
    desk.run()
    assert (desk.show("Status"), ids(desk)) == ("PAUSED", [])
    assert "SHOW LOAD ERRORS has all of them" in desk.show("ErrorMsg")
    desk.restart()
    errors = desk.sql("SHOW LOAD ERRORS FOR j LIMIT 1000")
    assert sorted((str(row[1])[-5:], row[2]) for row in errors) == [
        (f"{number}.csv", row + 1) for number in range(2) for row in range(0, 300, 3)
    ]
    assert {row[0] for row in errors} == {None}
    desk.sql('ALTER JOB j PROPERTIES("session.enable_insert_strict"="false"); RESUME JOB j')
    desk.run()
    after = desk.sql("SHOW LOAD ERRORS FOR j LIMIT 1000")
    assert (len(after), None in {row[0] for row in after}) == (200, False), "they are those of a commit now"
