"""What Spark makes of rows on their way from the reader to the writer."""

from __future__ import annotations

from lading.service import operations
from lading.service.views.jobs import JobViews
from tests.service.conftest import Desk

LOOSE = '"session.enable_insert_strict"="false", "session.insert_max_filter_ratio"="1"'


def test_bad_rows_between_many_good_ones_keep_their_places(desk: Desk) -> None:
    desk.sql("CREATE TABLE orders (id BIGINT NOT NULL, city STRING, amount DECIMAL(10,2)) USING delta")
    desk.put("a.csv", [f"{n},essen,1.5" for n in range(1, 70_001)])
    desk.put("b.csv", ["1,köln,1", ",essen,1", "3,essen", "4,bonn,1", "it's \\,x,1"])
    desk.create(select="id, city, amount", properties=LOOSE)
    desk.run()
    assert len(desk.ids()) == 70_002
    errors = sorted((str(row[1]).rpartition("/")[2], row[2], str(row[3])) for row in desk.sql("SHOW LOAD ERRORS FOR j"))
    assert [(file, row) for file, row, _ in errors] == [("b.csv", 2), ("b.csv", 3), ("b.csv", 5)]
    assert "NULL in a column that is NOT NULL" in errors[0][2]
    assert "Column count mismatch" in errors[1][2]


def test_rows_longer_than_batches_are_made_for_are_loaded(desk: Desk) -> None:
    desk.sql("CREATE TABLE orders (id BIGINT NOT NULL, city STRING, amount DECIMAL(10,2)) USING delta")
    desk.put("a.csv", [f"{n},{'x' * 9000},1.5" for n in range(2000)])
    desk.create()
    desk.run()
    assert desk.ids() == list(range(2000))
    desk.put("b.csv", [f"{n},{'x' * 9000},1.5" for n in range(2000, 2100)])
    desk.run()
    assert desk.ids() == list(range(2100))


def test_bad_rows_that_are_allowed_go_to_quarantine_and_are_not_made_null(desk: Desk) -> None:
    desk.sql("CREATE TABLE orders (id BIGINT NOT NULL, city STRING, amount DECIMAL(10,2)) USING delta")
    desk.put("a.csv", ["1,essen,1.5", "2,ulm,n/a"])
    desk.create(select="id, city, amount")
    desk.run()
    (job,) = JobViews(desk.lading).list_jobs()
    assert job.problem is not None
    operations.allow_bad_rows(desk.lading.session("ann", is_trusted=True), desk.lading.job("j"), job.problem.allow)
    desk.run()
    assert desk.ids() == [1]
    assert [str(row[3]) for row in desk.sql("SHOW LOAD ERRORS FOR j")] == [
        "column amount: cannot read 'n/a' as decimal(10,2)"
    ]
