"""CREATE opens the job: what LATEST and OFFSET_END mean is decided by the statement, not by the first run.

1. resolve the start to positions. Nothing durable: a source that cannot be reached makes no job.
2. keep the positions in the store. Dies here: positions of a job that does not exist, which nobody reads.
3. keep the record and the audit. Dies here: the job exists and its table does not know it yet. Its first start commits
   the opening bill with the positions of step 2.
4. commit the opening bill. Refused: the job is removed again. Unknown: the job stays, and its first start finds out;
   either way it begins at the positions of step 2. A process that takes longer than others wait for signs of life
   has lost the job to another service, and leaves it there: it may have loaded rows.
5. write down in the record that the job is open, and forget the positions. Dies before: the first start finds the head
   and takes the job over.

A store that is lost before step 4 loses the job; the statement was never confirmed.
"""

from __future__ import annotations

import json

from lading.commit.coordinator import Coordinator
from lading.commit.steps import run_steps
from lading.errors import FencedError, LadingError, StoreError, UnknownOutcomeError
from lading.failpoints import failpoint
from lading.jobs.events import OpeningCommitted, Stopped
from lading.jobs.record import JobRecord
from lading.model.bill import Bill
from lading.model.codec import encode
from lading.model.positions import Positions
from lading.service.edits.audit import audit
from lading.service.runtime.held_store import HeldStore
from lading.service.runtime.job_loop import save_event
from lading.service.runtime.opening import new_coordinator
from lading.service.runtime.starting import held_steps, opening_key
from lading.service.session import Session
from lading.sql.statements.jobs import CreateJob, CreateRoutineLoad
from lading.store.leases import is_lease_lost


def create_open_job(session: Session, record: JobRecord, statement: CreateJob | CreateRoutineLoad) -> None:
    """The steps of the module. The statement has its secrets; they are kept already."""
    lading = session.lading
    compiled, target = lading.compile(record, is_trial=True)
    try:
        # Asks whether the table can be appended to: the opening bill would be beside it when its commit is refused.
        target.writer_spec()
        positions = compiled.source.driver.open(compiled.job.start)
        lading.store.write_setting(opening_key(record.job_id), json.dumps(encode(positions)))
        failpoint("create.kept")
        # Batches of the job wait for the opening: the scheduler may find the record before the table has the head.
        with lading.runner(record.job_id).turn:
            lading.leases.take_new(record.job_id)
            lading.store.create_job(record, audit=audit(session, record, "CREATE", statement=statement))
            failpoint("create.recorded")
            bill = _commit_opening(session, record, new_coordinator(lading.tools, compiled, target), positions)
            if bill is None:
                return  # The positions stay: the service that has the job may not have opened it yet.
            failpoint("create.opened")
            shown = compiled.show_position(positions)
            event = OpeningCommitted(head=bill.head, totals=bill.totals, current_offset=shown, at=lading.clock.now())
            lading.runner(record.job_id).apply(event)
        lading.store.drop_setting(opening_key(record.job_id))
    finally:
        compiled.close()


def _commit_opening(session: Session, record: JobRecord, coordinator: Coordinator, positions: Positions) -> Bill | None:
    """None: this took so long that another service has the job by now. It opens the job, and says what goes wrong."""
    leases, job_id = session.lading.leases, record.job_id
    try:
        return run_steps(held_steps(coordinator.start(created_at=positions), lambda: leases.check_new(job_id)))
    except UnknownOutcomeError as error:
        raise UnknownOutcomeError(
            error.what,
            left="The job exists and begins at the positions of this moment.",
            todo="Nothing: its first run finds out whether the opening landed.",
            job_id=record.job_id,
        ) from error
    except StoreError:
        raise  # The table has the opening bill, or the first start commits it.
    except LadingError as error:
        if is_lease_lost(error) or not _is_removed(session, record, error):
            return None
        raise


def _is_removed(session: Session, record: JobRecord, error: LadingError) -> bool:
    """The table certainly does not have the opening bill: nothing is left of the job but what the audit says.

    False: another service has the job, and may have loaded rows. The store looks at the lease when it takes the change.
    """
    lading = session.lading
    entry = audit(session, record, "CREATE FAILED", facts={"why": error.what})
    try:
        held = HeldStore(lading.store, lading.leases.own_id)
        save_event(held, record.job_id, Stopped(at=lading.clock.now()), entry)
    except FencedError:
        return False
    lading.store.forget_job(record.job_id)
    lading.store.drop_setting(opening_key(record.job_id))
    lading.forget_runner(record.job_id)
    return True
