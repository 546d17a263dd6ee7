"""The index of bills. It is derived from them and may be lost."""

from __future__ import annotations

from sqlalchemy import delete, func, select

from lading.ids import JobId
from lading.model.bill import Bill
from lading.model.tally import Tally
from lading.store.bodies import parse_body, render_body
from lading.store.database import Database
from lading.store.records import BillEntry, entry_of
from lading.store.schema import BILLS


class SqlBills:
    """See `protocols.BillIndex`. It is a `lading.commit.protocols.Follower`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def followed_seq(self, job_id: JobId) -> int | None:
        """The newest bill that is in the index."""
        with self._database.read(f"Reading the index of job {job_id}") as connection:
            seq = connection.execute(select(func.max(BILLS.c.seq)).where(BILLS.c.job_id == job_id)).scalar_one()
        return None if seq is None else int(seq)

    def follow(self, bill: Bill) -> None:
        """Take a bill in. The same again, or an older one, changes nothing."""
        entry = entry_of(bill)
        row = {
            "job_id": entry.job_id,
            "seq": entry.seq,
            "epoch": entry.epoch,
            "token": entry.token,
            "kind": entry.kind.value,
            "billed_at": entry.billed_at,
            "body": render_body(entry),
        }
        newer = select(BILLS.c.seq).where(BILLS.c.job_id == entry.job_id, BILLS.c.seq >= entry.seq).limit(1)
        with self._database.write(f"Indexing bill {entry.seq} of job {entry.job_id}") as connection:
            if connection.execute(newer).first() is None:
                self._database.insert_new(connection, BILLS, row)

    def list_bills(self, job_id: JobId, *, limit: int = 1000, before_seq: int | None = None) -> list[BillEntry]:
        """The newest entries, newest first; `before_seq` turns the page."""
        query = select(BILLS.c.seq, BILLS.c.body).where(BILLS.c.job_id == job_id)
        if before_seq is not None:
            query = query.where(BILLS.c.seq < before_seq)
        with self._database.read(f"Reading the index of job {job_id}") as connection:
            rows = connection.execute(query.order_by(BILLS.c.seq.desc()).limit(limit)).all()
        return [parse_body(BillEntry, row.body, where=f"Bill {row.seq} of job {job_id}") for row in rows]

    def read_totals(self) -> dict[JobId, Tally]:
        """The totals of every job, as its newest bill has them."""
        newest = select(BILLS.c.job_id, func.max(BILLS.c.seq).label("seq")).group_by(BILLS.c.job_id).subquery()
        same = (BILLS.c.job_id == newest.c.job_id) & (BILLS.c.seq == newest.c.seq)
        with self._database.read("Reading totals") as connection:
            rows = connection.execute(select(BILLS.c.job_id, BILLS.c.body).join(newest, same)).all()
        parsed = [parse_body(BillEntry, row.body, where=f"A bill of job {row.job_id}") for row in rows]
        return {entry.job_id: entry.totals for entry in parsed}

    def trim_bills(self, job_id: JobId, keep: int) -> int:
        """Remove all but the newest entries. The newest one is always kept: its totals stand for the rest."""
        seqs = select(BILLS.c.seq).where(BILLS.c.job_id == job_id).order_by(BILLS.c.seq.desc())
        with self._database.write(f"Trimming the index of job {job_id}") as connection:
            oldest = connection.execute(seqs.offset(max(keep, 1) - 1).limit(1)).scalar_one_or_none()
            if oldest is None:
                return 0
            old = (BILLS.c.job_id == job_id) & (BILLS.c.seq < oldest)
            return connection.execute(delete(BILLS).where(old)).rowcount
