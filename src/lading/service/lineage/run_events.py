"""OpenLineage run events of one job, from its bills and its tasks. Pure.

Each batch is a run. Its id follows from the job and the commit, so that an event that is sent twice is the same event.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from lading import __version__
from lading.jobs.record import JobRecord
from lading.jobs.tasks import TaskRecord
from lading.model.load import SourceSpec
from lading.model.pairs import single_sources
from lading.model.tally import Tally
from lading.store.records import BillEntry

PRODUCER = f"urn:lading:{__version__}"
_SPEC = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACETS = "https://openlineage.io/spec/facets"
_GLOB = "*?[{"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """What is told of the table that a job loads, or joins with."""

    name: str
    """`database.table`."""
    location: str
    columns: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """What is the same in all events of a job."""

    record: JobRecord
    definition: str
    """Its statement, with secrets masked."""
    namespace: str
    target: TableFacts
    joined: TableFacts | None = None


def events_of_bill(facts: JobFacts, entry: BillEntry) -> list[Json]:
    """START and COMPLETE of a batch that was committed."""
    run_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"urn:lading/{entry.job_id}/{entry.seq}/{entry.token}"))
    commit = {"_producer": PRODUCER, "_schemaURL": "urn:lading:commit:1", "jobId": entry.job_id, "seq": entry.seq}
    run = {"runId": run_id, "facets": {"lading_commit": commit}}
    started = _event("START", entry.planned_at, run, facts, None)
    return [started, _event("COMPLETE", entry.billed_at, run, facts, entry.tally)]


def events_of_failure(facts: JobFacts, task: TaskRecord, message: str) -> list[Json]:
    """START and FAIL of a batch that was not committed."""
    run_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"urn:lading/{task.job_id}/task/{task.task_id}"))
    error = _facet("ErrorMessageRunFacet", "1-0-1", message=message, programmingLanguage="PYTHON")
    begun = task.started_at or task.created_at
    started = _event("START", begun, {"runId": run_id}, facts, None)
    run = {"runId": run_id, "facets": {"errorMessage": error}}
    return [started, _event("FAIL", task.finished_at or begun, run, facts, None)]


def _event(kind: str, at: datetime, run: Json, facts: JobFacts, tally: Tally | None) -> Json:
    job_type = _facet(
        "JobTypeJobFacet",
        "2-0-4",
        processingType="BATCH",
        integration="LADING",
        jobType=facts.record.kind.value.upper(),
    )
    sql = _facet("SQLJobFacet", "1-1-0", query=facts.definition)
    inputs = input_datasets(facts)
    outputs: list[Json] = [_table(facts.target, facts.namespace)]
    if tally is not None:
        if len(inputs) == 1:  # Of two sources, nobody knows which rows came from which.
            inputs[0]["inputFacets"] = {"inputStatistics": _read(tally)}
        outputs[0]["outputFacets"] = {"outputStatistics": _written(tally)}
    return {
        "eventType": kind,
        "eventTime": at.isoformat(),
        "producer": PRODUCER,
        "schemaURL": _SPEC,
        "run": run,
        "job": {
            "namespace": facts.namespace,
            "name": str(facts.record.full_name),
            "facets": {"jobType": job_type, "sql": sql},
        },
        "inputs": inputs,
        "outputs": outputs,
    }


def _read(tally: Tally) -> Json:
    size = max(tally.received_bytes, tally.source_bytes)
    more = {"fileCount": tally.source_files} if tally.source_files else {}
    return _facet("InputStatisticsInputDatasetFacet", "1-0-0", rowCount=tally.rows.total, size=size, **more)


def _written(tally: Tally) -> Json:
    return _facet(
        "OutputStatisticsOutputDatasetFacet",
        "1-0-2",
        rowCount=tally.written,
        size=tally.data_bytes,
        fileCount=tally.data_files,
    )


def _facet(name: str, version: str, **fields: Any) -> Json:
    return {"_producer": PRODUCER, "_schemaURL": f"{_FACETS}/{version}/{name}.json#/$defs/{name}", **fields}


def input_datasets(facts: JobFacts) -> list[Json]:
    """What a job reads: its source or both of them, and the table that it joins with."""
    spec = facts.record.spec
    sources = single_sources(spec.source).values() if spec is not None else ()
    found = [_named(*name_source(source)) for source in sources]
    return found if facts.joined is None else [*found, _table(facts.joined, facts.namespace)]


def name_source(source: SourceSpec) -> tuple[str, str]:
    """Namespace and name, by the naming conventions of OpenLineage. It has none for Kinesis."""
    properties: Mapping[str, str] = source.properties
    match source.kind:
        case "KAFKA":
            broker = properties.get("kafka_broker_list", "").split(",")[0].strip()
            return f"kafka://{broker}", properties.get("kafka_topic", "")
        case "KINESIS":
            return f"kinesis://{properties.get('aws.region', '')}", properties.get("kinesis_stream", "")
    return name_place(_folder(properties.get("uri", "")))


def name_place(uri: str) -> tuple[str, str]:
    """Namespace and name of files, and of a table by where it is."""
    parts = urlsplit(uri)
    if parts.scheme in ("", "file"):
        return "file", parts.path.rstrip("/") or "/"
    scheme = "s3" if parts.scheme in ("s3a", "s3n") else parts.scheme
    return f"{scheme}://{parts.netloc}", parts.path.strip("/") or "/"


def _folder(uri: str) -> str:
    """What stands before the first wildcard, up to a slash."""
    at = min((uri.find(sign) for sign in _GLOB if sign in uri), default=len(uri))
    return uri if at == len(uri) else uri[:at].rpartition("/")[0]


def _named(namespace: str, name: str) -> Json:
    return {"namespace": namespace, "name": name or "unknown"}


def _table(table: TableFacts, namespace: str) -> Json:
    dataset = _named(*name_place(table.location))
    link = {"namespace": namespace, "name": table.name, "type": "TABLE"}
    dataset["facets"] = {"symlinks": _facet("SymlinksDatasetFacet", "1-0-1", identifiers=[link])}
    if table.columns:
        columns = [
            {"name": name, "type": kind, "ordinal_position": at} for at, (name, kind) in enumerate(table.columns, 1)
        ]
        dataset["facets"]["schema"] = _facet("SchemaDatasetFacet", "1-2-0", fields=columns)
    return dataset
