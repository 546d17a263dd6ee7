"""All rigs: each format of the registry has a file `rig_<format>` here, whose RIGS are put through the contract."""

from __future__ import annotations

from importlib import import_module

from lading.tables.registry import NAMES
from tests.tables.rig import RigFactory
from tests.tables.rig_memory import MEMORY_RIGS

LAKE_RIGS: list[RigFactory] = [rig for name in NAMES for rig in import_module(f"tests.tables.rig_{name}").RIGS]
ALL_RIGS: list[RigFactory] = [*MEMORY_RIGS, *LAKE_RIGS]
