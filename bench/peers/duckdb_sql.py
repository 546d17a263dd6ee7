"""The mapping in DuckDB, for the contenders that use it."""

from __future__ import annotations

from collections.abc import Sequence

from bench.peers.order import KEPT, Order


def mapped_files(order: Order, files: Sequence[str]) -> str:
    """A query over these files."""
    listed = ", ".join(f"'{file}'" for file in files)
    types = ", ".join(f"'{name}': '{kind.replace('STRING', 'VARCHAR')}'" for name, kind in order.types.items())
    read = {
        "csv": f"read_csv([{listed}], header=true, delim=',', columns={{{types}}})",
        "json": f"read_json([{listed}], format='newline_delimited', columns={{{types}}})",
        "parquet": f"read_parquet([{listed}])",
    }[order.form]
    return f"SELECT {order.select} FROM {read} WHERE {KEPT}"
