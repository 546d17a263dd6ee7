"""Which rows of a table a batch joins: snapshots that bills name, kept through kills, and for those who may."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from deltalake import DeltaTable

from lading.errors import DeniedError
from lading.failpoints import arm, disarm_all
from lading.model.bill import BillKind
from lading.service.recover import recover
from lading.service.security.job_owner import owner_rights
from lading.tables.registry import kind_of
from lading.testing.marked import secret
from tests.service.conftest import Desk
from tests.service.join_rig import CSV, Dimension, Killed, bills, create, killed, put, reason, rows_of
from tests.tables.optional import skip_without


@pytest.fixture
def kills() -> Iterator[None]:
    yield
    disarm_all()


def test_a_batch_joins_what_the_bill_before_it_names(desk: Desk) -> None:
    pages = Dimension(desk)
    create(desk)
    pages.add((1, "first", 1))
    put(desk, "a.csv", "1,1")
    desk.run()
    pages.delete("id = 1")
    pages.add((1, "second", 1))
    put(desk, "b.csv", "2,1")
    desk.run()
    put(desk, "c.csv", "3,1")
    desk.run()
    assert rows_of(desk) == [(1, "1", "first"), (2, "1", "second"), (3, "1", "second")]
    loads = [bill for bill in bills(desk) if bill.kind is BillKind.LOAD]
    before = {bill.head: bill for bill in bills(desk)}
    named = [before[bill.replaces].joined[0].snapshot for bill in loads[::-1] if bill.replaces]
    assert named == ["1", "3", "3"]
    # Only a snapshot that is new costs a commit of its own.
    assert [bill.kind.value for bill in bills(desk)[::-1]] == [
        "opening",
        "takeover",
        "load",
        "takeover",
        "load",
        "load",
    ]
    plan = {str(what): str(how) for what, how in desk.sql("EXPLAIN JOB j")}
    assert plan["join"].startswith("JOIN shop.pages AS d ON ")
    assert plan["joined snapshot"] == plan["newest snapshot"] == "3 of shop.pages"
    assert "the bill before it names" in plan["kept fixed"]
    assert "joins it with the table" in plan["path"]
    assert plan["column title"] == "`d.title` → string"


def test_a_batch_that_is_repeated_joins_the_same_rows(desk: Desk, kills: None) -> None:
    pages = Dimension(desk)
    pages.add((1, "first", 1))
    create(desk)
    put(desk, "a.csv", "1,1")

    def die(name: str) -> None:
        pages.add((1, "later", 1))
        raise Killed(name)

    arm("merge.after", die)
    killed(desk)
    desk.run()
    assert rows_of(desk) == [(1, "1", "first")]
    put(desk, "b.csv", "2,1")
    desk.run()
    assert rows_of(desk) == [(1, "1", "first"), (2, "1", "first"), (2, "1", "later")]


def test_a_snapshot_that_maintenance_removed_is_replaced_in_sight(desk: Desk, kills: None) -> None:
    pages = Dimension(desk)
    pages.add((1, "first", 1))
    create(desk)
    put(desk, "a.csv", "1,1")

    def vacuum(name: str) -> None:
        disarm_all()
        pages.delete("true")
        pages.add((1, "newer", 1))
        gone = set(DeltaTable(pages.place).vacuum(0, enforce_retention_duration=False, dry_run=False))
        assert gone

    arm("stage.after", vacuum)
    desk.run()
    desk.run()
    assert rows_of(desk) == [(1, "1", "newer")]
    kinds = [bill.kind.value for bill in bills(desk)[::-1]]
    assert kinds.count("load") == 1
    named = [bill.joined[0].snapshot for bill in bills(desk)[::-1] if bill.joined]
    assert named[0] == "1"
    assert int(named[-1]) > 2, "a bill says which one was taken"
    assert desk.lading.verify("j").is_clean


@pytest.mark.parametrize(
    ("form", "steps"), [("delta", ("stage.after", "merge.after", "commit.after")), ("iceberg", ("merge.after",))]
)
def test_a_kill_at_any_step_writes_each_row_once(desk: Desk, kills: None, form: str, steps: tuple[str, ...]) -> None:
    skip_without(kind_of(form))
    pages = Dimension(desk)
    pages.add((1, "one", 1), (2, "two", 1), (2, "zwei", 1))
    create(desk, form=form)

    def die(name: str) -> None:
        raise Killed(name)

    for number, step in enumerate(steps):
        put(desk, f"{number:03}.csv", f"{number},2")
        pages.add((1, f"more {number}", 1))
        arm(step, die)
        killed(desk)
        desk.run()
    assert rows_of(desk) == sorted(
        [(number, "2", title) for number in range(len(steps)) for title in ("two", "zwei")], key=str
    )
    assert desk.lading.verify("j").is_clean


def test_a_table_that_is_gone_or_changed_stops_the_job_and_says_what_to_do(desk: Desk) -> None:
    pages = Dimension(desk)
    pages.add((1, "home", 1))
    create(desk)
    put(desk, "a.csv", "1,1")
    desk.run()
    desk.sql("DROP TABLE pages")
    put(desk, "b.csv", "2,1")
    desk.run()
    assert desk.show("Status") == "PAUSED"
    assert "joins with shop.pages, and this table is gone" in reason(desk)
    assert "Create it again, or ALTER the job" in reason(desk)
    desk.sql("CREATE TABLE pages (id BIGINT, name STRING) USING delta; RESUME JOB WHERE jobName = 'j'")
    desk.run()
    assert "shop.pages, which has no column title" in reason(desk)
    desk.sql("DROP TABLE pages")
    Dimension(desk).add((1, "again", 1))
    desk.sql("RESUME JOB WHERE jobName = 'j'")
    desk.run()
    assert rows_of(desk) == [(1, "1", "home"), (2, "1", "again")]


def test_a_replay_joins_the_table_as_it_is_now(desk: Desk) -> None:
    pages = Dimension(desk)
    pages.add((1, "then", 1))
    create(desk)
    put(desk, "0.csv", "0,1")
    put(desk, "1.csv", "1,1")
    desk.run()
    pages.delete("id = 1")
    pages.add((1, "now", 1))
    desk.sql("PAUSE JOB WHERE jobName = 'j'")
    offset = json.dumps({"fileName": f"{desk.inbox}/0.csv"})
    desk.sql(f"ALTER JOB j PROPERTIES('offset'='{offset}')")
    desk.sql("RESUME JOB WHERE jobName = 'j'")
    desk.run()
    assert rows_of(desk) == [(0, "1", "then"), (1, "1", "now"), (1, "1", "then")]


def test_alter_joins_with_another_table_or_with_none(desk: Desk) -> None:
    Dimension(desk).add((1, "page", 1))
    Dimension(desk, "others").add((1, "other", 1))
    create(desk)
    put(desk, "a.csv", "1,1")
    desk.run()
    source = f'FROM FILE("uri"="{desk.inbox}/*.csv", {CSV}) AS s'
    for number, join in enumerate(("LEFT JOIN others AS d ON s.page = d.id", "")):
        desk.sql("PAUSE JOB WHERE jobName = 'j'")
        title = "d.title" if join else "'none'"
        change = f"ALTER JOB j INSERT INTO t SELECT s.id, s.page, {title} {source} {join}"
        shown = {str(row[0]): row for row in desk.sql(f"EXPLAIN {change}")}
        assert "JOIN" in "".join(map(str, shown["select"]))
        desk.sql(f"{change}; RESUME JOB WHERE jobName = 'j'")
        put(desk, f"b{number}.csv", f"{number + 2},1")
        desk.run()
    assert rows_of(desk) == [(1, "1", "page"), (2, "1", "other"), (3, "1", "none")]
    assert bills(desk)[0].joined == ()


def test_select_on_the_table_is_needed_to_create_to_alter_and_to_run(desk: Desk) -> None:
    Dimension(desk).add((1, "home", 1))
    desk.sql("CREATE TABLE t (id BIGINT, title STRING) USING delta; CREATE USER ann; GRANT LOAD ON shop.t TO ann")
    keys = f'"s3.access_key"="{secret("key")}", "s3.secret_key"="{secret("key")}", "s3.region"="c"'
    s3 = f'"uri"="s3://b/*.csv", "format"="csv_with_names", {keys}'
    insert = "INSERT INTO t SELECT s.id, d.title FROM {}({}) AS s JOIN pages AS d ON s.page = d.id"
    ann = desk.lading.session("ann", "shop")
    for text in ("CREATE JOB j ON STREAMING DO {}", "ALTER JOB j {}", "EXPLAIN ALTER JOB j {}"):
        with pytest.raises(DeniedError, match="SELECT command denied"):
            ann.sql(text.format(insert.format("S3", s3)))
    desk.sql("GRANT ADMIN ON *.* TO ann")
    files = f'"uri"="{desk.inbox}/*.csv", {CSV}'
    ann.sql(f"CREATE JOB j ON STREAMING DO {insert.format('FILE', files)}")
    put(desk, "a.csv", "1,1")
    desk.run()
    desk.sql("REVOKE ADMIN ON *.* FROM ann")
    put(desk, "b.csv", "2,1")
    desk.run()
    assert desk.show("Status") == "PAUSED"
    assert "SELECT command denied to user 'ann'" in reason(desk)
    assert rows_of(desk, is_stopped=True) == [(1, "home")]
    desk.sql("GRANT SELECT ON shop.pages TO ann; RESUME JOB WHERE jobName = 'j'")
    desk.run()
    assert rows_of(desk) == [(1, "home"), (2, "home")]
    desk.sql("DROP USER ann")
    put(desk, "c.csv", "3,1")
    desk.run()
    assert "for user 'ann', who was dropped" in reason(desk)
    # The join of another user is theirs.
    desk.sql(f"ALTER JOB j {insert.format('FILE', files)}; RESUME JOB WHERE jobName = 'j'")
    desk.run()
    assert rows_of(desk) == [(1, "home"), (2, "home"), (3, "home")]


def test_a_recovered_job_joins_for_who_resumes_it(desk: Desk) -> None:
    Dimension(desk).add((1, "home", 1))
    desk.sql("CREATE TABLE t (id BIGINT, title STRING) USING delta")
    files = f'"uri"="{desk.inbox}/*.csv", {CSV}'
    insert = f"INSERT INTO t SELECT s.id, d.title FROM FILE({files}) AS s JOIN pages AS d ON s.page = d.id"
    desk.sql(f"CREATE JOB j ON STREAMING DO {insert}")
    put(desk, "a.csv", "1,1")
    desk.run()
    desk.lading.close()
    (desk.path / "home" / "lading.db").unlink()
    desk.restart_empty()
    assert {found.name: found.fate for found in recover(desk.lading)}["j"] == "recovered"
    with pytest.raises(DeniedError, match="it is not known for which user"):
        owner_rights(desk.lading.store, desk.lading.access, desk.lading.job("j").job_id)
    put(desk, "b.csv", "2,1")
    desk.sql("USE shop; CREATE USER ann; GRANT LOAD ON shop.t TO ann")
    desk.lading.session("ann", "shop").sql("RESUME JOB WHERE jobName = 'j'")
    desk.run()
    assert "SELECT command denied to user 'ann'" in reason(desk)
    desk.sql("GRANT SELECT ON shop.pages TO ann; RESUME JOB WHERE jobName = 'j'")
    desk.run()
    assert rows_of(desk) == [(1, "home"), (2, "home")]
