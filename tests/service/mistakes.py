"""The part of docs/errors.md that shows typical mistakes and their answers: `python -m tests.service.mistakes`."""

from __future__ import annotations

import re
import sys
import tempfile
from functools import partial
from pathlib import Path

from lading.errors import LadingError
from tests.meta.errors_page import MISTAKES as BEGIN
from tests.meta.errors_page import PAGE, written
from tests.service.test_rollbacks import LocalDesk

_PLACE, _COLUMN = "/data/in/", re.compile(r"^Line 1, column (\d+):")
HEAD = """
What somebody typed, and what Lading said, whole. The database is `shop`, with a table `orders` (id, city, amount) and a
folder of CSV files with the same columns. Nothing was changed by any of them.
"""
CSV = '"format"="csv_with_names", "column_separator"=","'
FROM = f'FROM FILE("uri"="/data/in/*.csv", {CSV})'
JOB = "CREATE JOB j ON STREAMING DO INSERT INTO orders SELECT"
KAFKA = 'CREATE ROUTINE LOAD r ON orders PROPERTIES("format"="json") FROM KAFKA("kafka_broker_list"="kafka:9092"'
MISTAKES = {
    "A word of a statement": f"CREAT JOB j ON STREAMING DO INSERT INTO orders SELECT * {FROM}",
    "No separator: that of Doris is a tab": f'{JOB} * FROM FILE("uri"="/data/in/*.csv", "format"="csv_with_names")',
    "The name of a format": f'{JOB} * FROM FILE("uri"="/data/in/*.csv", "format"="cvs")',
    "A property of the files": f'{JOB} * FROM FILE("uri"="/data/in/*.csv", "format"="csv", "colum_separator"=",")',
    "A property of the job": (
        f'CREATE JOB j PROPERTIES("max_intervall"="5") ON STREAMING DO INSERT INTO orders SELECT * {FROM}'
    ),
    "A value of a property": (
        f'CREATE JOB j PROPERTIES("max_interval"="five") ON STREAMING DO INSERT INTO orders SELECT * {FROM}'
    ),
    "A column that the files do not have": f"{JOB} id, citty, amount {FROM}",
    "Too few columns": f"{JOB} id, city {FROM}",
    "A function": f"{JOB} id, uppper(city), amount {FROM}",
    "A table that is not there": f"CREATE JOB j ON STREAMING DO INSERT INTO ordrs SELECT * {FROM}",
    "A database that is not there": f"CREATE JOB j ON STREAMING DO INSERT INTO shpo.orders SELECT * {FROM}",
    "A table without a format": "CREATE TABLE visits (id BIGINT)",
    "The type of a column": "CREATE TABLE visits (id BIGNIT) USING delta",
    "A table of Doris": "CREATE TABLE visits (id BIGINT) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 10",
    "A table that is there already": "CREATE TABLE orders (id BIGINT) USING delta",
    "A job by the clock": f"CREATE JOB j ON SCHEDULE EVERY 1 MINUTE DO INSERT INTO orders SELECT * {FROM}",
    "Rows by hand": "INSERT INTO orders VALUES (1, 'Essen', 2.50)",
    "Rows that are to be changed": "UPDATE orders SET city = 'Bonn' WHERE id = 1",
    "A topic without a name": f"{KAFKA})",
    "A job that is not there": "PAUSE JOB loads",
}


def render(folder: Path) -> str:
    """The part of the page, with the answers of a Lading in this folder."""
    desk = LocalDesk(folder)
    desk.table()
    desk.put("a.csv", ['1,"Essen, West",1.50', "2,Bonn,2.50"])
    parts = [_part(desk, number, *mistake) for number, mistake in enumerate(MISTAKES.items(), start=1)]
    assert desk.sql("SHOW JOBS") == []
    assert desk.sql("SHOW TABLES") == [("orders",)]
    desk.lading.close()
    return BEGIN + HEAD + "".join(parts)


def _part(desk: LocalDesk, number: int, what: str, statement: str) -> str:
    try:
        desk.sql(statement.replace(_PLACE, f"{desk.inbox}/"))
    except LadingError as error:
        said = _COLUMN.sub(partial(_moved, desk, statement), str(error).splitlines()[0])
        return f"\n### {number}. {what}\n\n```text\n{statement}\n```\n\n{said}\n"
    msg = f"no mistake any more: {what}"
    raise AssertionError(msg)


def _moved(desk: LocalDesk, statement: str, found: re.Match[str]) -> str:
    """The column in the statement as it is shown, where the folder has another name."""
    column, place = int(found[1]), statement.find(_PLACE)
    if 0 <= place < column:
        column -= len(f"{desk.inbox}/") - len(_PLACE)
    return f"Line 1, column {column}:"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        PAGE.write_text(written()[0] + render(Path(made)))
    sys.stdout.write(f"{PAGE} is written\n")
