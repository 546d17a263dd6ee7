"""What each type of listener does with a notice. A new type is a class here, and its properties in `sql`."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from lading.clock import Clock
from lading.errors import UnavailableError
from lading.model.bill import Bill
from lading.model.load import ListenerSpec
from lading.model.notices import Notice
from lading.net.outgoing import Outgoing
from lading.service.runtime.listeners import JobListeners, Listener
from lading.tables.base import DoneTag, LakeTable

SUCCESS = "_SUCCESS"
DONE, TABLE = "_done", "_table"
_BUCKET = re.compile(r"(^|/)bucket-\d+$")
_LONGEST_KEY = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerTools:
    """What listeners use of the service. Each is asked when somebody is told: what changed since counts."""

    outgoing: Callable[[ListenerSpec], Outgoing]
    """How the host of a listener may be reached. Raises when it may not be."""
    secret: Callable[[ListenerSpec], str]
    """The token of a listener. Raises when it is not there."""
    run: Callable[[str, bytes, float], None]
    """Runs the command of a name with an input, within a time. Raises unless it ended well."""


def make_listener(spec: ListenerSpec, target: str, table: LakeTable, tools: ListenerTools) -> Listener:
    """The listener of a job that loads into this table."""
    match spec.type:
        case "success_file":
            return SuccessFile(target, table)
        case "done_partition":
            return DonePartition(target, table)
        case "tag":
            return TagListener(spec, table)
        case "command":
            return CommandListener(spec, target, tools)
        case "http":
            return HttpHook(spec, target, tools)
    raise AssertionError(spec.type)  # `sql` knows the same types.


def open_listeners(
    specs: Sequence[ListenerSpec],
    target: str,
    table: LakeTable,
    clock: Clock,
    *,
    run: Callable[[str, bytes, float], None],
    outgoing: Callable[[ListenerSpec], Outgoing],
    secret: Callable[[ListenerSpec], str],
) -> JobListeners:
    """All listeners of a job, by their names."""
    tools = ListenerTools(run=run, outgoing=outgoing, secret=secret)
    return JobListeners({each.name: make_listener(each, target, table, tools) for each in specs}, clock)


def idempotency_key(bill: Bill, notice: Notice) -> str:
    """The same for the same notice, however often it is told."""
    key = f"{bill.job_id}/{notice.seq}/{notice.partition}/{notice.listener}"
    return key if len(key) <= _LONGEST_KEY else hashlib.sha256(key.encode()).hexdigest()


def facts_of(bill: Bill, notice: Notice, target: str) -> dict[str, object]:
    """What everybody is told. It does not depend on when, so that the same notice has the same text."""
    return {
        "job": bill.job_name,
        "job_id": bill.job_id,
        "table": target,
        "partition": notice.partition,
        "seq": notice.seq,
        "rows": notice.rows,
        "again": notice.is_again,
        "done_at": notice.marked_at.isoformat(),
    }


def partition_folder(notice: Notice) -> str:
    """Where the files of a partition are, relative to the table; empty for a table without partitions."""
    return _BUCKET.sub("", notice.folder) if notice.partition else ""


class SuccessFile:
    """A file `_SUCCESS` in the folder of the partition, or of the table."""

    def __init__(self, target: str, table: LakeTable) -> None:
        self._target = target
        self._table = table

    def tell(self, bill: Bill, notice: Notice) -> None:
        folder = partition_folder(notice)
        facts = facts_of(bill, notice, self._target)
        replace_facts(self._table, f"{folder}/{SUCCESS}" if folder else SUCCESS, facts)


class DonePartition:
    """A file `_done/<partition>.done` in the table: who wants to know what is complete lists one folder.

    Clean-ups of all engines pass over names that begin with an underscore.
    """

    def __init__(self, target: str, table: LakeTable) -> None:
        self._target = target
        self._table = table

    def tell(self, bill: Bill, notice: Notice) -> None:
        facts = facts_of(bill, notice, self._target)
        replace_facts(self._table, f"{DONE}/{notice.partition or TABLE}.done", facts)


class TagListener:
    """A tag `lading-<job>-<partition>`, or what the format has instead."""

    def __init__(self, spec: ListenerSpec, table: LakeTable) -> None:
        self._keep = timedelta(seconds=spec.retain_s)
        self._table = table

    def tell(self, bill: Bill, notice: Notice) -> None:
        self._table.tag(
            DoneTag(
                job_id=bill.job_id,
                job_name=bill.job_name,
                partition=notice.partition,
                seq=notice.seq,
                at=notice.marked_at,
                keep=self._keep,
            )
        )


def replace_facts(table: LakeTable, key: str, facts: Mapping[str, object]) -> None:
    """Put a small file beside the data, durably, in the place of an older one. A newer one of the job stays."""
    storage, content = table.bills.storage, json.dumps(facts).encode() + b"\n"
    if storage.put_if_absent(key, content):
        return
    known = storage.get(key)
    if known == content or _is_newer(known, facts):
        return
    # Dies after this: there is none, and the notice is still pending, so that it is written again.
    storage.delete([key])
    if not storage.put_if_absent(key, content):
        msg = f"{storage.uri}/{key} is written by somebody else at the same time"
        raise UnavailableError(msg, left="It was not touched.", todo="Use one job for each partition.")


def _is_newer(known: bytes | None, facts: Mapping[str, object]) -> bool:
    """Whether the same job wrote this after a later commit: a process that was stopped for long does not know."""
    try:
        found = json.loads(known or b"")
    except ValueError:
        return False
    if not isinstance(found, dict) or found.get("job_id") != facts["job_id"]:
        return False
    there, ours = found.get("seq"), facts["seq"]
    return isinstance(there, int) and isinstance(ours, int) and there > ours


@dataclass(frozen=True, slots=True)
class CommandListener:
    """A program that the owner of the service has named. It reads the facts as JSON; status 0 takes the notice."""

    spec: ListenerSpec
    target: str
    tools: ListenerTools = field(repr=False)

    def tell(self, bill: Bill, notice: Notice) -> None:
        facts = {**facts_of(bill, notice, self.target), "listener": notice.listener}
        facts["key"] = idempotency_key(bill, notice)
        self.tools.run(self.spec.command, json.dumps(facts).encode() + b"\n", self.spec.timeout_s)


@dataclass(frozen=True, slots=True)
class HttpHook:
    """A POST with JSON. Any status of 200 to 299 takes it; redirects are not followed."""

    spec: ListenerSpec
    target: str
    tools: ListenerTools = field(repr=False)

    def tell(self, bill: Bill, notice: Notice) -> None:
        facts = {**facts_of(bill, notice, self.target), "listener": notice.listener}
        headers = {"Content-Type": "application/json", "Idempotency-Key": idempotency_key(bill, notice)}
        if self.spec.token:
            headers["Authorization"] = f"Bearer {self.tools.secret(self.spec)}"
        status = self.tools.outgoing(self.spec).post(self.spec.url, json.dumps(facts).encode(), headers)
        if not 200 <= status < 300:
            said = f"{status}, a redirect, which is not followed" if 300 <= status < 400 else str(status)
            msg = f"The answer had status {said}"
            raise UnavailableError(msg, left="The notice stays pending.", todo="Check the receiver.")
