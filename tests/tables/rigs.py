"""All rigs, by name."""

from __future__ import annotations

from tests.tables.rig import RigFactory
from tests.tables.rig_delta import DELTA_RIGS
from tests.tables.rig_iceberg import ICEBERG_RIGS
from tests.tables.rig_memory import MEMORY_RIGS

LAKE_RIGS: list[RigFactory] = [*DELTA_RIGS, *ICEBERG_RIGS]
ALL_RIGS: list[RigFactory] = [*MEMORY_RIGS, *LAKE_RIGS]
