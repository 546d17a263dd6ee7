"""Operators and a sensor for Apache Airflow 2 and 3. The service is a connection of Airflow: its host is the URL, its
password the token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

try:
    from airflow.sdk import BaseHook, BaseOperator, BaseSensorOperator
except ImportError:  # Airflow 2.
    from airflow.hooks.base import BaseHook
    from airflow.models import BaseOperator
    from airflow.sensors.base import BaseSensorOperator
try:
    from airflow.sdk.exceptions import AirflowFailException
except ImportError:  # Airflow 2, and 3.0, whose operators are those of the SDK all the same.
    from airflow.exceptions import AirflowFailException

from lading.errors import JobStateError
from lading.integrations.client import ServiceClient

CONNECTION = "lading_default"


def _client(conn_id: str) -> ServiceClient:
    found = BaseHook.get_connection(conn_id)
    return ServiceClient(found.host, found.password or "", ca_file=found.extra_dejson.get("ca_file", ""))


class LadingSqlOperator(BaseOperator):  # type: ignore[misc]  # Airflow is not installed where types are checked
    """Run statements; the rows of the last one are the XCom."""

    template_fields: Sequence[str] = ("sql",)

    def __init__(self, *, sql: str, lading_conn_id: str = CONNECTION, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.sql = sql
        self.lading_conn_id = lading_conn_id

    def execute(self, context: Any) -> list[dict[str, Any]]:
        answers = _client(self.lading_conn_id).sql(self.sql)
        return answers[-1].dicts() if answers else []


class LadingRunOperator(BaseOperator):  # type: ignore[misc]  # Airflow is not installed where types are checked
    """Let a job load what is there: resume it when it is paused, wait until it has caught up, pause it again if asked.

    The number of rows that it has loaded in its life is the XCom.
    """

    template_fields: Sequence[str] = ("job",)

    def __init__(
        self,
        *,
        job: str,
        pause_afterwards: bool = False,
        timeout_s: float = 3600.0,
        quiet_s: float = 30.0,
        lading_conn_id: str = CONNECTION,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.job = job
        self.pause_afterwards = pause_afterwards
        self.timeout_s = timeout_s
        self.quiet_s = quiet_s
        self.lading_conn_id = lading_conn_id

    def execute(self, context: Any) -> int:
        client = _client(self.lading_conn_id)
        if client.progress(self.job).state == "PAUSED":
            client.resume(self.job)
        try:
            done = client.wait_until_caught_up(self.job, timeout_s=self.timeout_s, quiet_s=self.quiet_s)
        except JobStateError as error:
            # Bad rows stay bad: another try of the task would resume the job and meet them again.
            raise AirflowFailException(str(error)) from error
        if self.pause_afterwards:
            client.pause(self.job)
        return done.rows_loaded


class LadingJobSensor(BaseSensorOperator):  # type: ignore[misc]  # Airflow is not installed where types are checked
    """True when the job had nothing new at its last look at the source. Fails when it is paused or cancelled."""

    template_fields: Sequence[str] = ("job",)

    def __init__(self, *, job: str, lading_conn_id: str = CONNECTION, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.job = job
        self.lading_conn_id = lading_conn_id

    def poke(self, context: Any) -> bool:
        seen = _client(self.lading_conn_id).progress(self.job)
        if seen.is_stopped:
            msg = f"Job {self.job} is {seen.state}: {seen.why}"
            raise AirflowFailException(msg)
        return seen.is_caught_up
