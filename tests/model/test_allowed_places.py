"""Which places the metadata of a table may name."""

from __future__ import annotations

import pytest

from lading.model.s3_access import is_allowed


@pytest.mark.parametrize(
    ("uri", "is_fine"),
    [
        ("file:///data/wh/t/a.parquet", True),
        ("file:///data/wh/t/a%20b.parquet", True),
        ("file:///data/wh/../../etc/passwd", False),
        ("file:///data/wh/%2e%2e/%2e%2e/etc/passwd", False),
        ("file:///data/wh/.%2E/etc/passwd", False),
        ("file:/data/wh/..%2f..%2fetc/passwd", False),
        ("file:///data/who/t", False),
    ],
)
def test_no_spelling_leads_out_of_a_warehouse_on_this_machine(uri: str, is_fine: bool) -> None:
    assert is_allowed(uri, "s3://", has_own_keys=False, roots=("/data/wh",)) is is_fine
