"""What one installation has, for everything that works on its jobs: the façade, the statements and the threads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from lading.clock import Clock, SystemClock
from lading.commit.steps import run_steps
from lading.deferred import deferred
from lading.errors import LadingError
from lading.ids import JobId, new_incarnation
from lading.jobs.dialects import STREAMING
from lading.jobs.pausing import needs_a_person
from lading.jobs.record import JobName, JobRecord, JobState, parse_job_name
from lading.model.names import split_table
from lading.net.addresses import AddressRules
from lading.net.resolve import Resolver
from lading.pipeline.environment import cloud_identity
from lading.pipeline.pools import pool_of
from lading.service.catalog.file_catalogs import read_file_catalogs
from lading.service.catalog.lost_home import Opening, open_kept
from lading.service.catalog.tables import TableCatalog
from lading.service.home import Home
from lading.service.runtime.caretaker import forget_ended
from lading.service.runtime.context import CancellableStager, JobObserver, RunnerContext
from lading.service.runtime.job_locks import JobLocks
from lading.service.runtime.lease_keeper import LeaseKeeper
from lading.service.runtime.spark import Engine
from lading.service.runtime.starting import created_positions
from lading.service.runtime.unrecorded import Unrecorded
from lading.service.runtime.vector_choices import VectorChoices
from lading.service.security.audit_log import AuditLog
from lading.service.security.authorization import no_such_job
from lading.service.security.endpoints import Endpoints, installation_rules
from lading.service.security.job_owner import owner_rights
from lading.service.security.listener_commands import parse_commands, run_command
from lading.service.security.private_home import secure_home
from lading.service.security.reach import job_rules
from lading.service.security.root_password import forget_root_password
from lading.service.security.vault import open_secrets, resolve_properties, seal_secrets, secret_key
from lading.service.spark_queries.limits import QueryLimits
from lading.settings import environment, load_settings, spark_settings_of
from lading.store.home import HomeLock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lading.commit.coordinator import Coordinator
    from lading.model.bill import Bill
    from lading.model.load import LoadSpec
    from lading.pipeline.state.copies import copies_in
    from lading.service.catalog.joined import CatalogJoin
    from lading.service.compile.compiled import Compiled, Draft
    from lading.service.runtime.errors_tables import open_errors
    from lading.service.runtime.listener_types import open_listeners
    from lading.service.runtime.listeners import JobListeners
    from lading.service.runtime.opening import new_coordinator, newest_bills
    from lading.service.runtime.runner import JobRunner
    from lading.service.security.privileges import Rights
    from lading.service.security.users import Access
    from lading.service.spark_queries.asking import Queries, open_queries
    from lading.sql.statements.load_specs import read_load
    from lading.tables.base import LakeTable
else:
    copies_in = deferred("lading.pipeline.state.copies", "copies_in")
    CatalogJoin = deferred("lading.service.catalog.joined", "CatalogJoin")
    open_errors = deferred("lading.service.runtime.errors_tables", "open_errors")
    open_listeners = deferred("lading.service.runtime.listener_types", "open_listeners")
    new_coordinator = deferred("lading.service.runtime.opening", "new_coordinator")
    newest_bills = deferred("lading.service.runtime.opening", "newest_bills")
    JobRunner = deferred("lading.service.runtime.runner", "JobRunner")
    open_queries = deferred("lading.service.spark_queries.asking", "open_queries")
    read_load = deferred("lading.sql.statements.load_specs", "read_load")


class Installation:
    """A home with its store, tables, users and jobs, opened by one process at a time."""

    def __init__(
        self,
        home: str | Path,
        *,
        store_url: str | None = None,
        spark: Mapping[str, str] | None = None,
        session: SparkSession | None = None,
        clock: Clock | None = None,
        allow_private_endpoints: str | None = None,
        resolver: Resolver | None = None,
        opening: Opening = Opening.WORK,
        query_limits: QueryLimits | None = None,
    ) -> None:
        self.home = Home(path=Path(home).absolute())
        self.settings = load_settings(home=self.home.path)
        self.clock = clock or SystemClock()
        catalogs = read_file_catalogs(self.settings.file)
        url = self.settings.service.store if store_url is None else store_url
        self._is_alone = url in ("", self.home.store_url)
        secure_home(self.home.path)
        self.commands = parse_commands(self.settings.service.listener_commands)
        """Programs that listeners may run, by their names."""
        self._lock = HomeLock.acquire(self.home.path, self.clock)
        try:
            self.store, self.vault = open_kept(self.home, url, self.clock, opening, catalogs)
        except BaseException:
            self._lock.close()
            raise
        networks, own = allow_private_endpoints, self.settings.service.allow_private_endpoints
        rules = installation_rules(own if networks is None else networks)
        self.endpoints = Endpoints(self.store, self.clock, rules, resolver)
        self.catalog = TableCatalog(self.home, self.store, self.clock, self.vault, self.endpoints, catalogs)
        self.audit = AuditLog(self.home.audit, self.clock, self.settings.audit)
        self.vector = VectorChoices(is_on=self.settings.service.vector_path)
        settings = spark_settings_of(self.settings) if spark is None else {**self.settings.file.spark, **spark}
        self.engine = Engine(self.home, settings, session)
        self._queries: Queries | None = None
        self._open_queries = partial(open_queries, self.home, settings, session, query_limits, self.clock)
        self.job_locks = JobLocks()
        self._runners: dict[JobId, JobRunner] = {}
        self._runners_lock = threading.Lock()
        self._access: Access | None = None
        self._access_lock = threading.Lock()
        self.listeners: list[Callable[[], None]] = []
        """Told after every statement that may have changed a job."""
        incarnation, lease_s = new_incarnation(), self.settings.service.lease_seconds
        self.leases = LeaseKeeper(self.store, self.clock, incarnation, self.home.path, dead_after_s=lease_s)
        self._tools = RunnerContext(
            store=self.store,
            clock=self.clock,
            incarnation=incarnation,
            service_id=lambda: self.leases.service_id,
            has_others=lambda: self.leases.has_others,
            surely_holds=lambda job_id: self.leases.surely_holds(job_id),
            max_columns=self.settings.files.evolution_max_columns,
            compile=self.compile,
            open_target=self.open_target,
            make_stager=self._stager,
            make_listeners=self._listeners,
            make_errors=lambda record, table: open_errors(self.catalog, self.home, self._tools, record, table),
        )
        self.catalog.create_database("default", if_not_exists=True)
        self._end_lost_tasks()
        forget_ended(self.store, self.clock)

    @property
    def access(self) -> Access:
        """Users and what they may do."""
        with self._access_lock:
            if self._access is None:
                from lading.service.security.ldap_directory import open_ldap
                from lading.service.security.users import Access

                self._access = Access(
                    self.store,
                    self.clock,
                    self.vault,
                    security=self.settings.security,
                    directory=open_ldap(self.settings.ldap, self.clock),
                    on_root_password=partial(forget_root_password, self.home.path),
                    audit=self.audit,
                )
            return self._access

    @property
    def queries(self) -> Queries:
        """What answers queries on tables."""
        with self._access_lock:
            if self._queries is None:
                self._queries = self._open_queries()
            return self._queries

    def close(self) -> None:
        """Say goodbye to the jobs and let go of everything."""
        with self._runners_lock:
            runners = list(self._runners.values())
        for runner in runners:
            try:
                runner.goodbye()
            except LadingError as error:
                # The next start takes the job over; the others are still to be told.
                logging.getLogger("lading.jobs").warning("a job could not say goodbye: %s", error)
        self.leases.close()
        if self._queries is not None:
            self._queries.close()
        self.engine.close()
        self.audit.close()
        self.store.close()
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # What statements use.

    def job(self, name: str, *, include_final: bool = False) -> JobRecord:
        """A streaming job by its name."""
        return self._found(name, JobName(kind=STREAMING.kind, name=name), include_final=include_final)

    def any_job(self, name: str, *, include_final: bool = False) -> JobRecord:
        """A streaming job by its name, or a routine load by `database.name`."""
        return self._found(name, parse_job_name(name), include_final=include_final)

    def _found(self, name: str, wanted: JobName, *, include_final: bool) -> JobRecord:
        if (found := self.store.find_job(wanted, include_final=include_final)) is None:
            raise no_such_job(name)
        return found.record

    def live_jobs(self) -> list[JobRecord]:
        """Jobs that are to run, also those that wait after a fault that may be over: they are tried again."""
        return [stored.record for stored in self.store.list_jobs() if not needs_a_person(stored.record)]

    def runner(self, job_id: JobId) -> JobRunner:
        """The runner of a job in this incarnation."""
        with self._runners_lock:
            return self._runners.setdefault(job_id, JobRunner(job_id, self._tools))

    def forget_runner(self, job_id: JobId) -> None:
        """Let the next use of a job open it again."""
        with self._runners_lock:
            runner = self._runners.pop(job_id, None)
        if runner is not None:
            runner.goodbye()

    def give_back(self, job_id: JobId) -> bool:
        """End the work on a job that another service is to have. False: a batch is running."""
        with self._runners_lock:
            runner = self._runners.get(job_id)
        if runner is not None and not runner.try_goodbye():
            return False
        with self._runners_lock:
            self._runners.pop(job_id, None)
        return True

    def drop_runner(self, job_id: JobId) -> None:
        """Forget a runner whose state cannot be trusted; the job is taken over when it is opened next."""
        with self._runners_lock:
            runner = self._runners.pop(job_id, None)
        if runner is not None:
            runner.let_go()

    def changed(self) -> None:
        """Some job was made or changed."""
        for listener in list(self.listeners):
            listener()

    def auto_resumed(self, record: JobRecord) -> None:
        """A job goes on without a person."""
        for watch in self._tools.watches:
            watch.auto_resumed(record)

    @property
    def watches(self) -> list[JobObserver]:
        """Who is told of steps and commits."""
        return self._tools.watches

    @property
    def unrecorded(self) -> Unrecorded:
        """What happened to jobs and could not be written down."""
        return self._tools.unrecorded

    def load_of(self, record: JobRecord) -> LoadSpec:
        """What a job loads, with the secrets of the slot that the record names; references to secrets stay."""
        # A text that could not be read when the store was upgraded says here what is wrong with it.
        spec = record.spec or read_load(record.definition)
        known = {**spec.source.properties, **self.secrets_of(record)}
        return replace(spec, source=replace(spec.source, properties=known))

    def secrets_of(self, record: JobRecord) -> dict[str, str]:
        """The secret properties of a job's source: those of the slot that the record names. Raises SecretError."""
        kept = self.store.read_setting(secret_key(record.job_id, record.secrets_slot))
        return open_secrets(self.vault, kept, job=str(record.full_name))

    def open_source(self, record: JobRecord) -> tuple[LoadSpec, AddressRules]:
        """What a job loads, ready to be opened, and by which rules its hosts may be reached."""
        written = self.load_of(record)
        return self.followed(written), job_rules(self.endpoints, record.job_id, written.source)

    def followed(self, load: LoadSpec) -> LoadSpec:
        """The load with secrets in the place of references to them.

        Done each time a source is opened, so that a changed secret needs no ALTER.
        """
        known = resolve_properties(load.source.properties, home=self.home.path)
        return replace(load, source=replace(load.source, properties=known))

    def keep_secrets(self, job_id: JobId, whole: Mapping[str, str], kept: Mapping[str, str], slot: str = "") -> None:
        """Keep what the definition leaves out of a source: the values of secret properties, sealed, in the store alone.

        They are in force once the record of the job names their slot. A slot that is in force is never written again.
        """
        secrets = {name: value for name, value in whole.items() if name not in kept}
        self.store.write_setting(secret_key(job_id, slot), seal_secrets(self.vault, secrets))

    def drop_secrets(self, job_id: JobId, slot: str) -> None:
        """Forget secrets that no record names."""
        self.store.write_setting(secret_key(job_id, slot), "")

    def open_target(self, record: JobRecord) -> LakeTable:
        """The table a job loads into."""
        return self.catalog.open_table(*split_table(record.target))

    def compile(
        self, record: JobRecord, *, is_trial: bool = False, draft: Draft | None = None
    ) -> tuple[Compiled, LakeTable]:
        """A job's parts, from its record. A trial only shows whether they fit. `draft`: of a job that is not kept."""
        from lading.service.compile.compiler import Target, compile_load, open_context

        into = draft.into if draft is not None else None
        table, entry = into or (self.open_target(record), self.catalog.entry(*split_table(record.target)))
        target = Target(
            table=table,
            entry=entry,
            quarantine=self.home.quarantine(record.job_id) if self._is_alone and self.engine.is_local else None,
            state_copies=copies_in(self.settings.service.state_copies, self.settings.service.state_copies_mb),
            no_vector=self.vector.refusal(record.job_id),
        )
        load, addresses = draft.opened if draft is not None else self.open_source(record)
        if load.join is not None:
            rights = partial(self._owner_rights, record.job_id)
            target = replace(target, joined=CatalogJoin(self.catalog, load.join.table, rights))
        context = open_context(record, load, self.clock, addresses)
        settle_s = float(self.settings.files.file_settle_seconds)
        context = replace(context, settle_s=settle_s, is_trial=is_trial, parallel=self.engine.cores)
        return compile_load(record, load, target, context), table

    def coordinator(self, record: JobRecord) -> tuple[Coordinator, Compiled]:
        """A coordinator that has started, for an operator's edit, and the parts of the job, to be closed."""
        coordinator, compiled = self.new_coordinator(record)
        begins = created_positions(self.store, record)
        run_steps(coordinator.start(last_seen=record.last_seen, said_goodbye=record.goodbye, created_at=begins))
        return coordinator, compiled

    def new_coordinator(self, record: JobRecord) -> tuple[Coordinator, Compiled]:
        """The same, before it has started."""
        compiled, table = self.compile(record)
        return new_coordinator(self._tools, compiled, table), compiled

    @property
    def tools(self) -> RunnerContext:
        """What every runner of this service shares."""
        return self._tools

    def bills(self, record: JobRecord, limit: int) -> list[Bill]:
        """The newest bills of a job, newest first."""
        return newest_bills(self.open_target(record), record.job_id, limit)

    def spark(self) -> SparkSession:
        """The Spark session, started when it is first needed."""
        return self.engine.session()

    def warm_up(self) -> None:
        """Start Spark before somebody waits for it."""
        self.engine.warm_up()

    def _owner_rights(self, job_id: JobId) -> Rights | None:
        return owner_rights(self.store, self.access, job_id)

    def _end_lost_tasks(self) -> None:
        """Tasks whose process died, of jobs that nobody will open soon. For the others, opening decides."""
        others = self.leases.held_by_others()
        for record in [stored.record for stored in self.store.list_jobs(include_final=True)]:
            if record.job_id in others:
                continue
            if record.task is not None and (record.is_final or record.state is JobState.PAUSED):
                from lading.jobs.events import Interrupted

                self.runner(record.job_id).apply(Interrupted(at=self.clock.now()))

    def _stager(self, compiled: Compiled) -> CancellableStager:
        from lading.service.runtime.stagers import LazyStager, NoStager, SparkPorts

        if compiled.stage is None:
            return NoStager()
        tools, job_id = replace(compiled.stage.tools, identity=cloud_identity(environment())), compiled.job.job_id
        # A pool for each job: those that have much to do leave the others their even share.
        stage = replace(compiled.stage, tools=tools, pool=pool_of(job_id))
        tell = partial(self.vector.give_up, job_id)
        spark = SparkPorts(self.spark, self.engine.near_pool, self.engine.begin, self.engine.frames)
        return LazyStager(spark, stage, lambda message: self.runner(job_id).tell_waiting(message), tell)

    def _listeners(self, record: JobRecord, compiled: Compiled, table: LakeTable) -> JobListeners | None:
        if not compiled.listeners:
            return None
        from lading.service.security.listeners import listener_route, listener_token

        run, secret = partial(run_command, self.commands), partial(listener_token, home=self.home.path)
        outgoing = partial(listener_route, self.endpoints, record.job_id)
        return open_listeners(
            compiled.listeners, record.target, table, self.clock, run=run, outgoing=outgoing, secret=secret
        )
