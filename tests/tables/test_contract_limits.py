"""Large numbers and awkward names: the same tests for every table."""

from __future__ import annotations

from dataclasses import replace

from lading.ids import JobId, Token
from lading.model.bill import Head
from lading.model.outcome import Landed
from lading.model.positions import PartitionState, Positions
from tests.tables.drive import SPEC, driver, ids, load, new_job, opening, put_and_commit, some_rows, takeover
from tests.tables.rig import Rig

AWKWARD = ("with space", "größe 東京 🚚", 'it\'s "quoted"', "100% %2F", "a/b\\c", "line\nbreak", "")


def test_positions_of_ten_thousand_partitions_come_back(rig: Rig) -> None:
    table, job = rig.create("clicks", SPEC), new_job()
    names = [f"shardId-{number:012d}" for number in range(10_000)]
    positions = Positions(
        incarnation="2026", partitions={name: PartitionState(at=name[::-1], parents=(name,)) for name in names}
    )
    assert isinstance(put_and_commit(table, opening(job, positions)), Landed)
    again = rig.reopen("clicks")
    head = again.read_head(job.job_id)
    assert head is not None
    assert again.bills.read(job.job_id, head).positions == positions


def test_tokens_of_63_bits_come_back_exactly(rig: Rig) -> None:
    table, job = rig.create("clicks", SPEC), new_job()
    bill = opening(job, token=Token(2**63 - 1))
    assert isinstance(put_and_commit(table, bill), Landed)
    for token in (1, 2**53 + 1, 2**63 - 2):
        bill = replace(takeover(job, bill), token=Token(token))
        assert isinstance(put_and_commit(table, bill), Landed)
        assert rig.reopen("clicks").read_head(job.job_id) == Head(seq=bill.seq, token=Token(token))
    assert all(table.find(job.job_id, Token(token)) for token in (1, 2**53 + 1, 2**63 - 2, 2**63 - 1))
    assert not table.find(JobId("another job"), Token(1))


def test_a_seq_beyond_32_bits_comes_back_exactly(rig: Rig) -> None:
    table, job = rig.create("clicks", SPEC), new_job()
    first = opening(job)
    put_and_commit(table, first)
    late = replace(takeover(job, first), seq=2**31 + 7)
    assert isinstance(put_and_commit(table, late), Landed)
    later = takeover(job, late)
    assert isinstance(put_and_commit(table, later), Landed)
    assert rig.reopen("clicks").read_head(job.job_id) == later.head
    assert later.seq == 2**31 + 8


def test_awkward_names_of_jobs_and_partitions_come_back(rig: Rig) -> None:
    table = rig.create("clicks", SPEC)
    bills = [
        opening(
            new_job(name),
            Positions(incarnation=name, partitions={name: PartitionState(at=name, marks={name: name})}),
        )
        for name in AWKWARD
    ]
    assert all(isinstance(put_and_commit(table, bill), Landed) for bill in bills)
    again = rig.reopen("clicks")
    for bill in bills:
        assert again.read_head(bill.job_id) == bill.head
        assert again.bills.read(bill.job_id, bill.head) == bill


def test_a_commit_of_many_files_adds_them_all(rig: Rig) -> None:
    table, job = rig.create("clicks", SPEC), new_job()
    first = opening(job)
    put_and_commit(table, first)
    files = [file for number in range(20) for file in rig.stage(table, some_rows(number, 1), f"task-{number}")]
    assert isinstance(put_and_commit(table, load(job, first, files)), Landed)
    assert ids(rig, table) == list(range(20))


def test_many_commits_in_a_row_keep_every_row(rig: Rig) -> None:
    table, job = rig.create("clicks", SPEC), new_job()
    loader = driver(rig, table, job)
    loader.start()
    for _ in range(12):
        loader.run_batch()
    assert ids(rig, rig.reopen("clicks")) == list(range(36))
