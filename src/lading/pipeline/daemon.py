"""The process that Spark forks its Python workers from, with everything imported that they will need.

Spark's own daemon leaves imports to each worker, because some libraries start threads then and a fork keeps none of
them. The threads here are those of the memory allocators and of BLAS, which are made to be forked; Arrow's pools are
started by the first work and not by the import. A job has two workers for each core: together they save seconds.
"""

from __future__ import annotations

import importlib
from contextlib import suppress

from lading.pipeline.freed_memory import keep_freed_memory
from lading.pipeline.private_memory import hide_memory

MODULE = "lading.pipeline.daemon"
_NEEDED = (
    "pyspark.worker",
    "pyarrow.compute",
    "pyarrow.csv",
    "pyarrow.json",
    "pyarrow.parquet",
    "lading.pipeline.stager",
    "lading.pipeline.remote",
    "lading.pipeline.quarantine",
    "lading.pipeline.state.joins",
    "lading.pipeline.state.partials",
    "lading.sources.files.reader",
    "lading.tables.parquet",
    "lading.tables.registry",
)
"""By name: the pipeline knows neither sources nor tables, and what is missing here is missed by who needs it."""


def prepare() -> None:
    """Import, so that no worker has to."""
    for name in _NEEDED:
        with suppress(Exception):  # The task says what is missing, and where; see `guard`.
            importlib.import_module(name)
    with suppress(Exception):
        importlib.import_module("lading.pipeline.without_pandas").leave_out_pandas()


def main() -> None:
    """Import, then do what Spark's daemon does. Workers hold keys while they run: no other process looks into them."""
    hide_memory()
    keep_freed_memory()
    prepare()
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
