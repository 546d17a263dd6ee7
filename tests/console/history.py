"""An hour of commits, made in a moment with a clock that was set back."""

from __future__ import annotations

import math
import random
from datetime import timedelta
from pathlib import Path

from lading.service.telemetry.metrics import Metrics
from lading.status.lag import LagUnit
from tests.console.local import SLOW, LocalLading, PastClock

JOBS = ("orders", "payments", "returns", "stock_levels", "invoices", "shipments")
AWAY, LATE = "invoices", "shipments"
"""The folder of the one is gone; in that of the other is a file that came late."""
BACKFILL = f"orders_{SLOW}"
_CITIES = ("essen", "lagos", "osaka", "quito")
BEAT = timedelta(seconds=30)


def make_history(lading: LocalLading, metrics: Metrics, clock: PastClock, inbox: Path, *, beats: int = 120) -> None:
    """Six jobs with commits up to now: one is paused by hand, one by bad rows, one fails, one leaves a file out.
    And one that was just made, and has more to load than it can in a minute."""
    chance = random.Random(7)
    clock.behind = BEAT * beats
    lading.sql("CREATE DATABASE shop; USE shop")
    for name in JOBS:
        (inbox / name).mkdir()
        strict = name == "returns"
        late = '"s3.late_files" = "SHOW", ' if name == LATE else ""
        lading.sql(
            f"CREATE TABLE {name} (id BIGINT, city VARCHAR(64), amount DECIMAL(10,2)) USING delta; "
            f'CREATE JOB {name} PROPERTIES ({late}"max_interval" = "2", "file.settle_seconds" = "0", '
            f'"session.enable_insert_strict" = "{str(strict).lower()}", "session.enable_strict_cast" = "true", '
            '"session.insert_max_filter_ratio" = "0.2") '
            f"ON STREAMING COMMENT '{name.replace('_', ' ')} of all shops' DO INSERT INTO {name} "
            f"SELECT id, city, amount FROM "
            f'FILE("uri" = "{inbox}/{name}/*.csv", "format" = "csv_with_names", "column_separator" = ",")'
        )
    for beat in range(beats):
        for number, name in enumerate(JOBS):
            every = 12 if name in (AWAY, LATE) else 2 if number else 1
            if beat % every or (name == "stock_levels" and beat > 100):
                continue
            wave = 1.3 + math.sin(beat / 14 + number) + chance.uniform(-0.15, 0.15)
            is_last = beat >= beats - 2
            bad = 0.0 if name == "returns" and not is_last else 0.0005
            put_rows(inbox / name / f"{beat:04}.csv", int(5200 * wave / (1 + number)), chance, bad=bad)
            behind = max(0, int(3 * wave + chance.uniform(-3, 2)))
            metrics.lag_seen(lading.job(name), unit=LagUnit.FILES, partitions={f"file://{inbox}/{name}/": behind})
            lading.run([name])
        clock.behind -= BEAT
    lading.sql("PAUSE JOB WHERE jobname = 'stock_levels'")
    put_rows(inbox / LATE / "0000-corrected.csv", 200, chance)
    (inbox / AWAY).rename(inbox / f".{AWAY}")
    (inbox / AWAY).write_text("somebody moved the folder")
    lading.run([AWAY, LATE])
    make_backfill(lading, inbox, chance)


def make_backfill(lading: LocalLading, inbox: Path, chance: random.Random, *, files: int = 3000) -> None:
    """A job with so many files before it, and one of them in a batch."""
    (inbox / BACKFILL).mkdir()
    for number in range(files):
        put_rows(inbox / BACKFILL / f"{number:05}.csv", 20, chance, bad=0)
    lading.sql(
        f"USE shop; CREATE TABLE {BACKFILL} (id BIGINT, city VARCHAR(64), amount DECIMAL(10,2)) USING delta; "
        f'CREATE JOB {BACKFILL} PROPERTIES ("s3.max_batch_files" = "1", "file.settle_seconds" = "0") '
        f"ON STREAMING COMMENT 'orders of the last years' DO INSERT INTO {BACKFILL} SELECT id, city, amount FROM "
        f'FILE("uri" = "{inbox}/{BACKFILL}/*.csv", "format" = "csv_with_names", "column_separator" = ",")'
    )


def put_rows(path: Path, rows: int, chance: random.Random, bad: float = 0.0005) -> None:
    """A file of orders, a few of them wrong."""
    block = [f"{number},{chance.choice(_CITIES)},{chance.uniform(1, 900):.2f}" for number in range(200)]
    lines = ["id,city,amount", *(block * (rows // 200 + 1))[:rows]]
    for _ in range(math.ceil(rows * bad)):
        lines[chance.randrange(1, rows + 1)] = f"{chance.randrange(9999)},{chance.choice(_CITIES)},n/a"
    draft = path.with_name(f".{path.name}")
    draft.write_text("\n".join(lines) + "\n")
    draft.rename(path)
