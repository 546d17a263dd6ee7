"""Records with every field set to something that is not its default."""

from __future__ import annotations

from datetime import UTC, datetime

from lading.ids import Incarnation, JobId, Token
from lading.model.batch import Gap, Range, StagedFile
from lading.model.bill import Bill, BillKind, Head
from lading.model.joined import JoinedTable
from lading.model.notices import Listening, Notice, OpenPartition
from lading.model.positions import PartitionState, Positions
from lading.model.state import StateRef
from lading.model.tally import RowCounts, Tally

AT = datetime(2026, 3, 4, 5, 6, 7, 890123, tzinfo=UTC)

FULL_BILL = Bill(
    job_id=JobId("7b0c5c0e-94f0-4b39-8a3e-5a3c1c1f7d11"),
    job_name="sales.größe 'x'",
    kind=BillKind.LOAD,
    epoch=3,
    seq=2**40,
    token=Token(2**63 - 1),
    replaces=Head(seq=2**40 - 1, token=Token(17)),
    continues=Head(seq=2**40 - 5, token=Token(18)),
    accepts_rollback=True,
    incarnation=Incarnation("0f" * 16),
    positions=Positions(
        incarnation="2026-01-01T00:00:00Z",
        partitions={
            "shard-1": PartitionState(
                at="20", finished=True, parents=("shard-0",), marks={"arrival": "5"}, event_us=-(2**50), read_at=AT
            ),
            'päth "with" quotes': PartitionState(at="", finished=True, given_up=True, missing_since=AT),
        },
        watermark_us=2**53 + 1,
    ),
    ranges=(Range(partition="shard-1", start="10", end="20"),),
    gaps=(Gap(partition="shard-1", start="5", end="10", reason="trimmed", at=AT),),
    files=(StagedFile(path="data/a b.parquet", rows=7, size_bytes=99, partition={"day": "1", "x": None}, stats="{}"),),
    quarantine=("quarantine/a.jsonl",),
    first_error="a.csv, row 3: not a number",
    replayed_through=2**40 - 3,
    joined=(JoinedTable(table="shop.pages", incarnation="2026-07-30T12:00:00+00:00", snapshot="17"),),
    state=StateRef(
        manifest="_lading/x/state/1.manifest.json", digest="ab" * 32, files=3, rows=12, size_bytes=1234, next_us=7
    ),
    listening=Listening(
        open={"dt=x": OpenPartition(rows=3, seq=2**40, written_at=AT, folder="dt=x", ends_us=-5)},
        notices=(
            Notice(
                listener="hook",
                partition="dt=y",
                seq=2**40 - 1,
                rows=4,
                folder="data/dt=y",
                marked_at=AT,
                is_again=True,
            ),
        ),
        done=("dt=z", "dt=y"),
        marked=5,
        late_rows=6,
        untracked=7,
    ),
    tally=Tally(
        rows=RowCounts(total=17, loaded=7, unselected=2, error=1, late=3, duplicate=4),
        received_bytes=100,
        source_files=2,
        source_bytes=120,
        data_files=1,
        data_bytes=99,
        written=7,
        ahead=5,
        commits=1,
    ),
    totals=Tally(
        rows=RowCounts(total=187, loaded=77, unselected=22, error=11, late=33, duplicate=44),
        received_bytes=1100,
        source_files=22,
        source_bytes=1320,
        data_files=11,
        data_bytes=1089,
        written=77,
        ahead=55,
        commits=11,
    ),
    reason="because",
    definition="CREATE JOB x",
    table_version=41,
    lading_version="0.1.0",
    planned_at=AT,
    billed_at=AT,
)
