"""Counters of the audit log for Prometheus. They begin at zero with the service."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from lading.service.security.audit_log import AuditLog


class AuditCollector(Collector):
    """Reads what the audit log has counted."""

    def __init__(self, audit: AuditLog) -> None:
        self._audit = audit

    def collect(self) -> Iterator[Metric]:
        """All counters, also those that are zero."""
        events = CounterMetricFamily(
            "lading_audit_events", "What happened, by kind and result.", labels=("kind", "result")
        )
        for (kind, result), count in self._audit.events.items():
            events.add_metric((kind.value, result.value), count)
        yield events
        failed = CounterMetricFamily("lading_failed_logins", "Logins that were refused, by face.", labels=("face",))
        for face, count in self._audit.failed_logins.items():
            failed.add_metric((face.value,), count)
        yield failed
        denied = CounterMetricFamily("lading_denials", "Statements and requests that were denied.", labels=("face",))
        for face, count in self._audit.denials.items():
            denied.add_metric((face.value,), count)
        yield denied
        lost = "Events that could not be written to the audit log."
        yield CounterMetricFamily("lading_audit_lost", lost, self._audit.lost)
