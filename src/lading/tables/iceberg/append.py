"""One append, prepared: everything that is sent to the catalog in one commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update import AssertTableUUID, SetPropertiesUpdate, TableRequirement, TableUpdate
from pyiceberg.table.update.snapshot import _SnapshotProducer

from lading.errors import SchemaMismatchError
from lading.model.batch import StagedFile
from lading.model.bill import Bill
from lading.tables.iceberg.features import check_appendable
from lading.tables.iceberg.heads import Anchor, head_property, render_anchor, summary_for
from lading.tables.iceberg.lineage import VERSION as LINEAGE_VERSION
from lading.tables.iceberg.lineage import assert_next_numbers
from lading.tables.iceberg.merge import LineageAppend, TieredAppend
from lading.tables.iceberg.resume import resume_properties
from lading.tables.iceberg.schema import check_fits
from lading.tables.iceberg.stats import data_file, parse_stats

MERGE_DEFAULTS = {
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.min-count-to-merge": "50",
    # A merge rewrites at most about ten thousand entries: a second, at PyIceberg's speed.
    "commit.manifest.target-size-bytes": str(2 * 1024 * 1024),
}
"""Used where the table itself says nothing, and never stored in it. Without merging every commit would read and write
one manifest more than the one before it."""


class _BaseTransaction(Transaction):
    """A transaction that shows producers the loaded metadata itself.

    PyIceberg's own copies all of it, every snapshot, at each of the dozen looks a producer takes. Nothing is staged
    in here: the updates are collected by `prepare_append` and sent by its caller, so that no retry of PyIceberg's can
    skip the comparison of heads, and no file is deleted before the table was looked at.
    """

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        properties = {**MERGE_DEFAULTS, **table.metadata.properties}
        self._base = table.metadata.model_copy(update={"properties": properties})

    @property
    def table_metadata(self) -> TableMetadata:
        return self._base


def base_transaction(table: Table) -> Transaction:
    """A transaction for a producer whose updates are sent by its caller."""
    return _BaseTransaction(table)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedCommit:
    """What one attempt sends, and what it has written for that."""

    updates: tuple[TableUpdate, ...]
    requirements: tuple[TableRequirement, ...]
    sequence_number: int
    producer: _SnapshotProducer[Any]

    def has_landed(self, table: Table) -> bool:
        """Whether a table that was loaded afterwards has this attempt's snapshot."""
        return table.metadata.snapshot_by_id(self.producer.snapshot_id) is not None

    def delete_files(self) -> None:
        """Delete the manifests of an attempt that certainly did not land. Best effort: they would be orphans."""
        self.producer._clean_all_uncommitted()  # noqa: SLF001 - PyIceberg has no public name for it


def prepare_append(table: Table, location: str, staged: Sequence[StagedFile], bill: Bill) -> PreparedCommit:
    """Write the manifests of an append and say what has to be sent. The bill is beside the table at `location`.

    The append adds a snapshot also when there are no files: a commit that only set the head's property would carry no
    requirement on the snapshot, and a batch that was prepared before it could land after it. With the snapshot, the
    requirement "main is still at the parent" is the compare-and-set for everything.
    """
    check_appendable(table, where=".".join(table.name()))
    data_files = _data_files(table, staged)
    # Dies from here on until the commit is sent: manifests may be left that no snapshot names.
    transaction, has_lineage = _BaseTransaction(table), table.metadata.format_version == LINEAGE_VERSION
    producer = (LineageAppend if has_lineage else TieredAppend)(
        Operation.APPEND, transaction, table.io, snapshot_properties=summary_for(bill)
    )
    for file in data_files:
        producer.append_data_file(file)
    try:
        # Semi-private: `producer.commit()` would stage into the transaction, which copies and validates all again.
        updates, requirements = producer._commit()  # noqa: SLF001
    except Exception:
        producer._clean_all_uncommitted()  # noqa: SLF001
        raise
    number = table.metadata.next_sequence_number()
    anchor = Anchor(head=bill.head, snapshot_id=producer.snapshot_id, sequence_number=number, location=location)
    moved = {head_property(bill.job_id): render_anchor(anchor), **resume_properties(bill)}
    move_head = SetPropertiesUpdate(updates=moved)
    unchanged: TableRequirement = AssertTableUUID(uuid=table.metadata.table_uuid)
    if has_lineage and isinstance(table.catalog, MetastoreCatalog):
        unchanged = assert_next_numbers(table.metadata)
    return PreparedCommit(
        updates=(move_head, *updates),
        requirements=(*requirements, unchanged),
        sequence_number=number,
        producer=producer,
    )


def _data_files(table: Table, staged: Sequence[StagedFile]) -> list[DataFile]:
    metadata = table.metadata
    schema, spec, where = metadata.schema(), metadata.spec(), ".".join(table.name())
    facts = [parse_stats(file) for file in staged]
    for schema_id, spec_id in {(each.schema_id, each.spec_id) for each in facts}:
        written = metadata.schema_by_id(schema_id)
        if written is None or spec_id != spec.spec_id:
            msg = f"Staged files were written for another schema or partitioning than the Iceberg table {where} has now"
            raise SchemaMismatchError(
                msg, left="Nothing was written to the table.", todo="The batch must be staged again."
            )
        check_fits(written, schema, where=where)
    return [
        data_file(file, known, spec, schema, metadata.format_version) for file, known in zip(staged, facts, strict=True)
    ]
