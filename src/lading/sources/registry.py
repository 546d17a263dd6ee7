"""The kinds of sources that statements can name. A new one is a folder and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from lading.errors import NotSupportedError
from lading.model.load import LoadSpec
from lading.sources.files.kind import FilesKind
from lading.sources.kafka.kind import KafkaKind
from lading.sources.kind import SourceKind, StreamKind
from lading.sources.kinesis.kind import KinesisKind
from lading.sql.properties.jobs import check_of_source
from lading.sql.statements.definitions import define_routine_load, define_streaming_job, placed
from lading.sql.statements.jobs import CreateJob, CreateRoutineLoad
from lading.sql.statements.load_specs import load_with_secrets
from lading.sql.statements.parts import SourceFunction
from lading.sql.syntax.parse_select import ONE_SOURCE

FILES: dict[str, SourceKind] = {"S3": FilesKind(name="S3"), "FILE": FilesKind(name="FILE")}
"""What only CREATE JOB loads from."""
STREAMS: dict[str, StreamKind] = {"KAFKA": KafkaKind(), "KINESIS": KinesisKind()}
"""What both CREATE ROUTINE LOAD and CREATE JOB load from."""


def kinds() -> dict[str, SourceKind]:
    """All of them, by their names."""
    return {**FILES, **STREAMS}


def kind_of(name: str) -> SourceKind:
    """The kind of a source by the name that a statement gives it."""
    return kinds()[name] if name in kinds() else _unknown(name)


def stream_kind(name: str) -> StreamKind:
    """The same for the source of a routine load."""
    return STREAMS[name] if name in STREAMS else _unknown(name)


def is_stream(load: LoadSpec | None) -> bool:
    """Whether a load reads a stream, which is asked for its lag; files are counted by those who load them."""
    return load is not None and load.source.kind in STREAMS


def check_load(statement: CreateJob | CreateRoutineLoad) -> None:
    """Check everything that can be checked without looking at the source or the table."""
    if isinstance(statement, CreateJob):
        define_streaming_job(statement)
        source = statement.insert.source
        names = list(kinds())
        known = f"{', '.join(names[:-1])} or {names[-1]}"
        _check_known(source, kinds(), f"{ONE_SOURCE}, and it must be {known}, not {_written(source)}")
    else:
        define_routine_load(statement)
        source = statement.source
        _check_known(source, STREAMS, f"{source.name} cannot be the source of a routine load")
    with placed(source):
        if isinstance(statement, CreateJob):
            check_of_source(statement.properties, source.name, is_stream=source.name in STREAMS)
        kind_of(source.name).check(load_with_secrets(statement))


def _written(source: SourceFunction) -> str:
    """Its name, as the statement writes it."""
    return source.span.text[source.span.start : source.span.end].partition("(")[0].strip() or source.name


def _check_known(source: SourceFunction, known: Mapping[str, SourceKind], msg: str) -> None:
    if source.name not in known:
        hint = f"expected {' or '.join(f'{name}(…)' for name in known)}"
        raise NotSupportedError(msg, place=source.span, hint=hint)


def _unknown(name: str) -> StreamKind:
    msg = f"{name} cannot be the source of this job"
    raise NotSupportedError(msg, todo=f"Known are: {', '.join(kinds())}.")
