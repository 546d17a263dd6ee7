"""A stream as a job opens it, and what tasks show of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from lading.clock import Clock
from lading.jobs.record import JobRecord
from lading.model.batch import BatchPlan
from lading.model.bill import Bill
from lading.model.load import LoadSpec
from lading.model.positions import PartitionState, Positions
from lading.net.addresses import AddressRules
from lading.service.compile.mapping import Mapped
from lading.service.security.endpoints import endpoints_of
from lading.sources.kind import Stream, StreamContext, StreamKind
from lading.sources.registry import stream_kind


def open_stream(record: JobRecord, load: LoadSpec, mapped: Mapped, clock: Clock, addresses: AddressRules) -> Stream:
    """The source of a load that has its secrets. Nothing is asked of the stream yet."""
    kind = stream_kind(load.source.kind)
    return kind.open(
        load,
        StreamContext(
            columns=mapped.source_columns,
            metadata=mapped.metadata,
            consumer=f"{record.name}_{record.job_id}",
            clock=clock,
            addresses=cluster_rules(kind, load, addresses),
        ),
    )


def cluster_rules(kind: StreamKind, load: LoadSpec, rules: AddressRules) -> AddressRules:
    """Where the hosts may be that a cluster tells of: somebody who trusts a cluster trusts it with those."""
    if not kind.cluster_property:
        return rules
    first = endpoints_of({kind.cluster_property: load.source.properties.get(kind.cluster_property, "")})
    return replace(rules, allow_private=True) if all(rules.names(each.host) for each in first) else rules


def range_text(kind: StreamKind, plan: BatchPlan, bill: Bill | None) -> str:
    """By partition: the first record that a batch reads, and the last one where that is known."""
    ranges = bill.ranges if bill is not None else plan.splits
    starts = kind.words(_places({each.partition: each.start for each in ranges}))
    ends = kind.progress(_places({each.partition: each.end for each in ranges if each.end is not None}))
    shown = {name: {"start": at, **({"end": ends[name]} if name in ends else {})} for name, at in starts.items()}
    return json.dumps(shown, separators=(",", ":")) if shown else ""


def end_text(kind: StreamKind, stream: Stream) -> str:
    """The last record that each partition was known to have, as its position is shown."""
    ends = stream.source.ends()
    return kind.position_text(_places(ends)) if ends else ""


def _places(places: Mapping[str, str]) -> Positions:
    return Positions(partitions={name: PartitionState(at=at) for name, at in places.items()})
