"""ADMIN CLEAN ORPHANS and `lading clean`: what killed batches left goes, and nothing else."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lading import failpoints
from lading.cli.main import app
from lading.errors import ConfigError, DeniedError, TableNotFoundError
from lading.service.scheduling.cleaner import CleaningRounds
from lading.tables.registry import NAMES, kind_of
from tests.console.local import LocalLading, PastClock
from tests.service.conftest import Desk
from tests.tables.optional import skip_without

KIND, PATH, REMARK = 1, 2, 4
WEEK_S = 7 * 86400.0


class Killed(BaseException):
    """The process ends here."""


class LocalDesk(Desk):
    """Without Spark."""

    clock = PastClock()

    def _open(self) -> LocalLading:
        return LocalLading(self.path / "home", user="tester", clock=self.clock)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    LocalDesk.clock.behind = timedelta(0)
    made = LocalDesk(tmp_path)
    yield made
    failpoints.disarm_all()
    made.lading.close()


def killed_batch(desk: Desk, where: str = "commit.before") -> None:
    """A batch that is killed before its commit, and everything that it left is a week old."""
    failpoints.arm(where, _kill)
    with pytest.raises(Killed):
        desk.run()
    failpoints.disarm_all()
    desk.restart()
    age_all(desk)


def _kill(_name: str) -> None:
    raise Killed


def age_all(desk: Desk) -> None:
    for path in (desk.path / "home").rglob("*"):
        if path.is_file() and ("warehouse" in path.parts or "quarantine" in path.parts):
            os.utime(path, (time.time() - WEEK_S,) * 2)


@pytest.mark.parametrize("form", NAMES)
def test_what_a_killed_batch_left_is_shown_and_then_removed(desk: Desk, form: str) -> None:
    skip_without(kind_of(form))
    desk.table(form=form)
    LocalDesk.clock.behind = timedelta(days=8)
    desk.create(properties='"session.insert_max_filter_ratio" = "0.5", "session.enable_insert_strict" = "false"')
    desk.put("a.csv", ["1,essen,1.50", "no number,essen,1.50", "2,essen,1.50"])
    LocalDesk.clock.behind = timedelta(0)
    killed_batch(desk)
    # Whether it landed is found out when the job goes on: until then everything stays.
    assert desk.sql("ADMIN CLEAN ORPHANS DRY RUN") == []
    killed_batch(desk, "bill.before")
    desk.run()
    age_all(desk)
    assert desk.ids() == [1, 2]
    shown = desk.sql("ADMIN CLEAN ORPHANS FROM shop.orders OLDER THAN 2 DAYS DRY RUN")
    assert {"data file", "bad rows"} <= {str(row[KIND]) for row in shown}
    assert desk.sql("ADMIN CLEAN ORPHANS") == shown
    assert desk.sql("ADMIN CLEAN ORPHANS") == []
    assert desk.ids() == [1, 2]
    assert desk.lading.verify("j").is_clean
    assert [row[0] for row in desk.sql("SHOW LOAD ERRORS FOR j")], "the bad row of the batch that was committed"


def test_young_files_and_those_of_a_running_batch_stay(desk: Desk) -> None:
    desk.table()
    desk.create()
    desk.put_orders("a.csv", 0, 3)
    seen: list[list[tuple[object, ...]]] = []

    def look(_name: str) -> None:
        age_all(desk)  # The batch runs for a week.
        seen.append(desk.sql("ADMIN CLEAN ORPHANS"))

    failpoints.arm("commit.before", look)
    desk.run()
    assert seen == [[]]
    assert desk.ids() == [0, 1, 2]


def test_it_says_why_a_table_was_not_looked_at(desk: Desk) -> None:
    desk.table()
    desk.create()
    desk.put_orders("a.csv", 0, 3)
    desk.run()
    (desk.path / "home" / "warehouse" / "shop" / "orders" / "_delta_log" / "00000000000000000001.json").unlink()
    row = desk.sql("ADMIN CLEAN ORPHANS")[0]
    assert row[KIND] is None
    assert row[REMARK]
    assert desk.lading.catalog.entry("shop", "orders")


def test_wrong_words_are_refused(desk: Desk) -> None:
    with pytest.raises(ConfigError, match="at least an hour old"):
        desk.sql("ADMIN CLEAN ORPHANS OLDER THAN 0 HOURS")
    with pytest.raises(TableNotFoundError):
        desk.sql("ADMIN CLEAN ORPHANS FROM shop.nothing")


def test_only_admins_may(desk: Desk) -> None:
    desk.table()
    desk.sql("CREATE USER jack; GRANT LOAD, SELECT ON shop TO jack; CREATE USER anna; GRANT ADMIN ON shop TO anna")
    with pytest.raises(DeniedError):
        desk.lading.session("jack").sql("ADMIN CLEAN ORPHANS FROM shop.orders")
    with pytest.raises(DeniedError):
        desk.lading.session("anna").sql("ADMIN CLEAN ORPHANS")
    assert desk.lading.session("anna").sql("ADMIN CLEAN ORPHANS FROM shop.orders")[0].rows == ()


def test_a_service_does_it_by_itself(desk: Desk) -> None:
    desk.table()
    desk.create()
    desk.put_orders("a.csv", 0, 3)
    killed_batch(desk)
    desk.run()
    age_all(desk)
    left = [str(row[PATH]) for row in desk.sql("ADMIN CLEAN ORPHANS DRY RUN")]
    assert left
    rounds = CleaningRounds(desk.lading, first_s=0)
    rounds.start()
    until = time.monotonic() + 60
    while desk.sql("ADMIN CLEAN ORPHANS DRY RUN") and time.monotonic() < until:
        time.sleep(0.01)
    rounds.close()
    table = desk.path / "home" / "warehouse" / "shop" / "orders"
    assert not [path for path in left if (table / path).exists()]
    assert desk.ids() == [0, 1, 2]


def test_the_command_tells_and_removes(desk: Desk) -> None:
    desk.table()
    desk.create()
    desk.put_orders("a.csv", 0, 3)
    killed_batch(desk)
    desk.run()
    age_all(desk)
    desk.lading.close()
    home = ["--home", str(desk.path / "home")]
    dry = CliRunner().invoke(app, ["clean", "--dry-run", *home])
    assert dry.exit_code == 0, dry.output
    assert "shop.orders: data file " in dry.output
    assert "would be removed" in dry.output
    done = CliRunner().invoke(app, ["clean", "shop.orders", "--older-than", "12 hours", *home])
    assert "were removed" in done.output
    again = CliRunner().invoke(app, ["clean", *home])
    assert again.output.startswith("0 files")
    desk.restart_empty()
    assert desk.ids() == [0, 1, 2]


@pytest.mark.parametrize(
    "words", [["shop.orders` ; DROP TABLE shop.orders; --"], ["--older-than", "3 DAYS; DROP TABLE shop.orders"]]
)
def test_the_command_runs_nothing_but_itself(desk: Desk, words: list[str]) -> None:
    desk.table()
    desk.lading.close()
    done = CliRunner().invoke(app, ["clean", *words, "--home", str(desk.path / "home")])
    assert done.exit_code != 0
    desk.restart_empty()
    assert [row[0] for row in desk.sql("SHOW TABLES FROM shop")] == ["orders"]


def test_bad_rows_of_commits_stay_when_the_home_has_another_name(desk: Desk) -> None:
    desk.table()
    LocalDesk.clock.behind = timedelta(days=8)
    desk.create(properties='"session.insert_max_filter_ratio" = "0.9", "session.enable_insert_strict" = "false"')
    desk.put("a.csv", ["1,essen,1.50", "no number,essen,1.50"])
    desk.run()
    LocalDesk.clock.behind = timedelta(0)
    desk.lading.close()
    (desk.path / "home").rename(desk.path / "moved")
    (desk.path / "home").symlink_to(desk.path / "moved")
    desk.restart_empty()
    age_all(desk)
    kept = list((desk.path / "moved" / "quarantine").rglob("*.jsonl"))
    assert kept
    desk.sql("ADMIN CLEAN ORPHANS")
    assert all(path.exists() for path in kept)
