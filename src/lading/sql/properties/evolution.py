"""Properties that say what becomes of fields the table has no column for, for jobs of every kind of source."""

from __future__ import annotations

from collections.abc import Mapping

from lading.model.load import EvolutionSpec
from lading.sql.properties.values import Rule, needed, read_fields, word

_RULES = (
    Rule(name="schema.evolution", field="mode", read=word("NONE", "ADD", "ADD_AND_WIDEN")),
    Rule(name="rescued_data_column", field="rescued_column", read=needed),
)
EVOLUTION_PROPERTY_NAMES = frozenset(rule.name for rule in _RULES)


def read_evolution(properties: Mapping[str, str]) -> EvolutionSpec:
    """How the table of a job grows with its source."""
    return EvolutionSpec(**read_fields(_RULES, properties))
