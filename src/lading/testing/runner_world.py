"""An installation in memory whose jobs are run as a service runs them: the real loop of the runner, the real
transitions of its record, the real coordinator, planner and caretaker, over a metadata store that fails and is lost.

The schedule is the scheduler: it gives turns and honours the waits that are asked for by letting time pass. What
operators do is in `operator.py`.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from lading.commit.coordinator import Coordinator
from lading.commit.ports import CoordinatorPorts
from lading.errors import WORKER_LOST, LadingError, StageError, StoreError
from lading.ids import Incarnation, JobId, Token
from lading.jobs.actions import Halt, Rest, Retry
from lading.jobs.batches import MAX_ATTEMPTS
from lading.jobs.events import Created, Interrupted, PausedByUser
from lading.jobs.reasons import RECOVERED, Reason, ReasonCode
from lading.jobs.record import JobKind, JobRecord, JobState, Pace
from lading.jobs.transition import create_record
from lading.model.batch import BatchPlan, Limits
from lading.model.bill import Bill, BillKind, Head
from lading.model.codec import encode
from lading.model.load import LoadLimits, LoadSpec, MappingSpec, SourceSpec
from lading.plan.planner import Planner
from lading.service.runtime.job_loop import save_event
from lading.service.runtime.starting import opening_key
from lading.status.outcomes import Outcome
from lading.tables.maintenance import CarePolicy, CareReport
from lading.testing.causes import check_cause
from lading.testing.listeners import ScriptedListeners, Told
from lading.testing.memory_store import MemoryStore
from lading.testing.operator import attend
from lading.testing.simulated_runner import Runner, SimulatedJob, WatchedStager
from lading.testing.source import Row
from lading.testing.verdict import PROGRESS_MISMATCH, RUNAWAY, STUCK, Findings
from lading.testing.verifier import Evidence, Version, check_all_read, verify
from lading.testing.world import MAX_QUIET_STEPS, World

OTHER_JOB = JobId("00000000-0000-4000-8000-000000000002")
ROWS = 8
"""Of a batch at full scale."""
INTERVAL_S = 1.0
DROPPED_S = 10.0
"""How long a service waits before it tries a job again whose record could not be written."""


@dataclass(slots=True)
class RunnerWorld(World):
    """One job of the installation, and everything that can happen to it."""

    beside: RunnerWorld | None = None
    """A job that loads into the same table and has its record in the same store."""
    records: MemoryStore = field(init=False)
    runners: list[Runner] = field(default_factory=list)
    cause: Exception | None = None
    """Why the job was paused last."""
    clean_end: Head | None = None
    """Where an incarnation ended cleanly, until somebody opens the job."""
    deaths: int = 0
    """Batches that died in a row while they were read and written."""
    commits_known: int = 0
    """Of which a start has told."""
    tried_at: tuple[Head | None, int] = (None, 0)
    """The head when an attempt last failed, and how many commits the record knew of."""
    paused_s: float | None = None
    """Since when an operator wants it paused."""
    tries: int = 0
    """Attempts that failed in a row without a pause."""
    crowded_s: float = -1.0
    """When more than one incarnation was last there: what one of them does to the record surprises the others."""
    losses: int = 0
    """How often the store was lost."""
    is_quiet: bool = False
    own_files: set[str] = field(default_factory=set)
    told: list[Told] = field(default_factory=list)
    """What the listener of the job was told."""

    def __post_init__(self) -> None:
        World.__post_init__(self)
        self.source.has_poison = self.setting.has_poison
        self.records = MemoryStore(self.rng, faults=self.setting.faults)
        if self.beside is not None:
            self.table, self.bills, self.clock = self.beside.table, self.beside.bills, self.beside.clock
            self.records = self.beside.records
        self._create()
        created, self.store.created_at = self.store.created_at, None
        faults, self.records.faults = self.records.faults, 0.0
        if created is not None:
            self.records.write_setting(opening_key(self.job_id), json.dumps(encode(created)))
        self.records.faults = faults

    def _create(self) -> None:
        event = Created(
            job_id=self.job_id,
            name="simulated",
            database="shop",
            kind=self.rng.choice(list(JobKind)),
            definition="",
            spec=LoadSpec(
                name="simulated",
                target="t",
                source=SourceSpec(kind="SIMULATED"),
                mapping=MappingSpec(),
                limits=LoadLimits(interval_s=1, size_bytes=1),
                on_poison_record="QUARANTINE",
            ),
            target="t",
            at=self.clock.now(),
        )
        self.records.create_job(create_record(event)[0])

    @property
    def record(self) -> JobRecord:
        return self.records.peek(self.job_id)

    # What a runner works with.

    def compile(self, runner: Runner, record: JobRecord) -> SimulatedJob:
        """Put the job together, as large as its record says."""
        rows = max(1, int(ROWS * record.batch_scale))
        stager = WatchedStager(self.source, self._write, self.rng, faults=self.setting.faults / 3)
        stager.runner, stager.spool = runner, self.objects if self.setting.keeps_state else None
        return SimulatedJob(self.new_coordinator(runner, stager, rows, record.pace), rows)

    def new_coordinator(
        self, runner: Runner, stager: WatchedStager, rows: int = ROWS, pace: Pace | None = None
    ) -> Coordinator:
        job, known = self.make_job(Limits(rows=rows)), pace or Pace()
        words, is_narrow = job.on_data_loss, known.scale < 1
        planner = Planner(self.source, self.clock, on_data_loss=words, is_narrow=is_narrow, poison=known.poison)
        ports = CoordinatorPorts(
            table=self.table,
            bills=self.bills,
            planner=planner,
            stager=stager,
            merger=self.make_merger(self._write),
            clock=self.clock,
            new_token=lambda: Token(self.rng.randrange(1, 2**63)),
            followers=(self.records,),
            listeners=ScriptedListeners(self.table, self.job_id, self.told) if self.setting.listens else None,
        )
        return Coordinator(job, ports, runner.incarnation)

    def look_after(self, job_id: JobId, policy: CarePolicy, now: datetime) -> CareReport:
        """Lading's own care, when a commit is due for it: nothing goes while the head of any job is astray."""
        others = [self.job_id, *([self.beside.job_id] if self.beside else [])]
        if self.setting.prunes and not any(self.table.is_behind(other) for other in others):
            head = self.table.read_head_unchecked(job_id)
            if head is not None:
                oldest = self.bills.prune(job_id, head=head, keep_commits=policy.keep_commits)
                self.oldest_bill = max(self.oldest_bill, oldest)
        return CareReport()

    def _write(self, path: str, rows: Sequence[Row]) -> None:
        self.own_files.add(path)
        self.table.write_file(path, rows)

    # Events.

    def spawn(self) -> None:
        self.deaths = self.tries = 0
        if self.runners:
            self.clean_end = None  # The one that opens the job now is not alone.
        self.runners.append(Runner(self, Incarnation(f"incarnation-{self.rng.getrandbits(32):08x}")))
        # As a service does when it starts: the process that ran the open task is gone.
        if self.record.task is not None and self.record.state is JobState.PAUSED:
            with suppress(StoreError):
                save_event(self.records, self.job_id, Interrupted(at=self.clock.now()))

    def run(self, runner: Runner) -> None:
        """Let one incarnation go on to its next step."""
        self.clock.sleep(0.01)
        if len(self.runners) > 1:
            self.crowded_s, self.deaths, self.tries = self.clock.monotonic_s(), 0, 0
        if runner.work is None:
            self._give_turn(runner)
        try:
            next(runner.work)  # type: ignore[arg-type]  # set by _give_turn
        except StopIteration:
            self._ended(runner)
        except LadingError:
            # As the scheduler does: a runner whose state cannot be trusted is dropped.
            runner.work, self.deaths, self.tries = None, 0, 0
            runner.loop.let_go()
            runner.forget()
            runner.due_s = self.clock.monotonic_s() + DROPPED_S

    def crash(self, runner: Runner) -> None:
        """The process is gone, wherever it was."""
        self.counts.crashes += 1
        self.deaths = self.tries = 0
        if runner.work is not None:
            runner.work.close()
        self.runners = [other for other in self.runners if other is not runner]

    def pause(self, runner: Runner) -> None:
        """PAUSE: the batch that runs is cut off before its commit, and the job says goodbye."""
        try:
            save_event(self.records, self.job_id, PausedByUser(user="ann", at=self.clock.now()))
        except LadingError:
            return  # Refused, or the store is away: nothing was changed.
        self.cause, self.paused_s = None, self.clock.monotonic_s()
        runner.is_cut_off = True
        if runner.work is None:
            runner.work = self._halted(runner)

    def leave(self, runner: Runner) -> None:
        """The process ends cleanly between two turns."""
        if runner.work is None:
            runner.work = self._left(runner)

    def lose_store(self) -> None:
        """The metadata store is gone and is made again from the table; the job waits for somebody who resumes it."""
        self.records.lose(self.job_id)
        self._create()
        self.losses += 1
        # What the turns that run now write down is not what they read.
        self.crowded_s = self.clock.monotonic_s()
        self.paused_s = None
        self.clean_end, self.deaths, self.tries, self.cause = None, 0, 0, None
        head = self.table.read_head_unchecked(self.job_id)
        if head is None:
            self.promises.created = None
            return
        bill = self.bills.read_ever(self.job_id, head)
        reason = Reason(code=ReasonCode.MANUAL_PAUSE_ERR, message=f"{RECOVERED}t")
        recovered = replace(self.record, state=JobState.PAUSED, reason=reason, last_seen=head, totals=bill.totals)
        self.records.create_job(recovered)

    def clean_up(self) -> None:
        """Another engine's clean-up removes every bill, of both jobs."""
        gone = self.bills.clean()
        for job in (self, self.beside):
            if job is not None:
                job.cleaned |= {seq for owner, seq in gone if owner == job.job_id}

    def roll_back(self) -> None:
        oldest = {self.job_id: self.oldest_bill}
        if self.beside is not None:
            oldest[self.beside.job_id] = self.beside.oldest_bill
        self.table.restore_random(oldest, self.rng)

    # The turns.

    def _give_turn(self, runner: Runner) -> None:
        record = self.record
        if (
            record.state is JobState.PAUSED and self.rng.random() < 0.8
        ):  # Else it is given a turn, which must do nothing.
            runner.work = attend(self, runner, record)
            return
        self.clock.sleep(max(0.0, runner.due_s - self.clock.monotonic_s()))
        runner.began_s, runner.error = self.clock.monotonic_s(), None
        runner.work = runner.loop.turn()

    def _ended(self, runner: Runner) -> None:
        runner.work = self._halted(runner) if runner.is_cut_off else None
        match runner.loop.next:
            case Retry(after_s=wait_s):
                runner.due_s = self.clock.monotonic_s() + wait_s
            case Rest():
                runner.due_s = self.clock.monotonic_s() + INTERVAL_S

    def _halted(self, runner: Runner) -> Generator[str, None, None]:
        """What a statement does after it has changed the record to PAUSED: Halt, in the turn of the job."""
        coordinator, losses = runner.coordinator, self.losses
        yield from runner.loop.execute((Halt(),))
        bill = coordinator.bill if coordinator is not None else None
        is_alone = len(self.runners) == 1 and self._is_alone(runner) and losses == self.losses
        if bill is not None and is_alone and bill.head == self.table.read_head_unchecked(self.job_id):
            self.clean_end = bill.head
        runner.forget()

    def _left(self, runner: Runner) -> Generator[str, None, None]:
        yield from self._halted(runner)
        self.runners = [other for other in self.runners if other is not runner]

    # The end of a schedule.

    def finish(self) -> Findings:
        """Quiet time: no more faults, one incarnation, until nothing is left to read. Then look."""
        self.setting.faults = self.table.faults = self.records.faults = 0.0
        self.source.listing_fails = self.source.old_listings = 0
        self.table.drop_or_deliver_pending()
        self.runners.clear()
        self.is_quiet = True
        drained = self._drain_quietly()
        findings = Findings()
        findings.found += self.causes.found
        findings.expect(drained, STUCK, f"not done after {MAX_QUIET_STEPS} quiet steps")
        findings.found += verify(self.evidence()).found
        head = self.table.read_head_unchecked(self.job_id)
        if head is not None and not findings.found:
            bill = self.bills.read(self.job_id, head)
            check_all_read(self.source, bill, findings)
            same = (self.record.last_seen, self.record.totals) == (head, bill.totals)
            findings.expect(same, PROGRESS_MISMATCH, "the record of the job is not that of its head")
        return findings

    def evidence(self, *, with_views: bool = True) -> Evidence:
        own = self.own_files
        versions = [
            Version(files=v.files & own, head=v.heads.get(self.job_id), restored=v.restored)
            for v in self.table.versions
        ]
        return Evidence(
            versions=versions,
            read_bill=partial(self.bills.read_ever, self.job_id),
            file_rows=self.table.file_rows,
            source=self.source,
            promises=self.promises,
            followed=tuple(self.records.followed.get(self.job_id, ())) if with_views else (),
            shown_totals=self.records.totals.get(self.job_id) if with_views else None,
            oldest_bill=self.oldest_bill,
            cleaned=frozenset(self.cleaned),
            watermark=self.setting.watermark,
            horizon=self.setting.horizon,
            window=self.setting.window,
            state_rows=self.objects.rows,
            told=self.told,
        )

    def _drain_quietly(self) -> bool:
        self.spawn()
        runner = self.runners[0]
        for _ in range(MAX_QUIET_STEPS):
            self.run(runner)
            if runner.work is None and runner.loop.next == Rest(is_drained=True):
                return True
        return False

    # What must hold while jobs run.

    def note_opened(self, bill: Bill, *, is_first: bool) -> None:
        """Users are told that the job is open; nobody is fenced who has said goodbye."""
        if is_first:
            self.tries = 0  # The task of a process that is gone has ended; this one's begins.
        if bill.totals.commits != self.commits_known:
            self.commits_known, self.deaths = bill.totals.commits, 0  # What nobody knew of has landed.
        if self.promises.opened is None and bill.epoch == 0:  # Else somebody moved it before it was told.
            self.promises.opened = bill.positions.partitions
        is_alone = len(self.runners) == 1  # Else another one may have begun before the goodbye was said.
        is_needless = is_alone and bill.kind is BillKind.TAKEOVER and bill.replaces == self.clean_end is not None
        self.causes.expect(not is_needless, PROGRESS_MISMATCH, "a job that had said goodbye was taken over")
        self.clean_end = None

    def check_staging(self, runner: Runner, plan: BatchPlan) -> None:
        """No batch of a job that was paused before its turn; a batch that died twice is half as large."""
        rows = max(split.limits.rows for split in plan.splits)
        ran_on = self.paused_s is not None and self.paused_s < runner.began_s
        if self._is_alone(runner):
            self.causes.expect(not ran_on, RUNAWAY, "a batch was staged in a turn that began after the job was paused")
            most = max(1, min(ROWS // 2 ** (self.deaths // 2), int(ROWS * self.record.batch_scale)))
            self.causes.expect(rows <= most, RUNAWAY, f"{self.deaths} batches died, and the next has {rows} rows")

    def check_ended(self, runner: Runner, record: JobRecord, outcome: Outcome) -> None:
        """How a job goes on after a batch that ended badly."""
        if outcome == "fenced":
            waits = record.state is not JobState.RUNNING
            self.causes.expect(waits, RUNAWAY, "a job that was fenced goes on by itself")
        if not self._is_alone(runner):
            return
        self.deaths += outcome == "failed" and isinstance(runner.error, StageError)
        if outcome in ("failed", "refused", "unknown") and record.state is JobState.RUNNING:
            failures = record.task.attempt - 1 if record.task is not None else record.failures
            least_s = min(0.25 * 2 ** max(0, failures - 1), 8.0)
            action = runner.loop.next
            waits = isinstance(action, Retry) and action.after_s >= least_s
            self.causes.expect(waits, RUNAWAY, f"{failures} attempts failed, and the next comes at once")
            # What nobody knew of may have landed: a new task begins then, also when that is found out much later.
            known = record.totals.commits if record.totals else 0
            tried, self.tried_at = self.tried_at, (self.table.read_head_unchecked(self.job_id), known)
            is_same = tried == self.tried_at
            # A batch that killed its worker is cut: the next one is no further attempt at it.
            is_cut = isinstance(runner.error, StageError) and runner.error.code == WORKER_LOST
            is_try = outcome != "unknown" and not is_cut
            self.tries = self.tries + 1 if is_try and is_same else int(is_try)
            told = f"{self.tries} attempts failed, and the job was not paused"
            self.causes.expect(self.tries < MAX_ATTEMPTS, RUNAWAY, told)
        else:
            self.tries = 0

    def _is_alone(self, runner: Runner) -> bool:
        return self.crowded_s < runner.began_s

    def check_cause(self, runner: Runner, error: Exception) -> None:
        """What a job says when it stops must be so."""
        self.cause = error
        check_cause(self, runner, error)
