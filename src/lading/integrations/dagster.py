"""A resource and an asset for Dagster."""

# Dagster reads the hints of functions as they are: they must not be texts.
from typing import Any

from dagster import AssetsDefinition, ConfigurableResource, Failure, MaterializeResult, asset

from lading.errors import JobStateError
from lading.integrations.client import Progress, ServiceClient
from lading.service.result import Result


class LadingResource(ConfigurableResource):  # type: ignore[misc]  # Dagster is not installed where types are checked
    """A running service. Give the token as `EnvVar("LADING_TOKEN")`, so that Dagster shows nobody what it is."""

    url: str
    token: str
    ca_file: str = ""

    def client(self) -> ServiceClient:
        """Everything that can be asked of it."""
        return ServiceClient(self.url, self.token, ca_file=self.ca_file)

    def sql(self, text: str) -> list[Result]:
        """Run statements; one answer for each."""
        return self.client().sql(text)

    def run(self, job: str, *, timeout_s: float = 3600.0, quiet_s: float = 30.0) -> Progress:
        """Resume a job that is paused, and wait until it has caught up. Raises Failure when it stops."""
        client = self.client()
        if client.progress(job).state == "PAUSED":
            client.resume(job)
        try:
            return client.wait_until_caught_up(job, timeout_s=timeout_s, quiet_s=quiet_s)
        except JobStateError as error:
            raise Failure(description=str(error), allow_retries=False) from error


def lading_asset(
    job: str, *, name: str = "", timeout_s: float = 3600.0, quiet_s: float = 30.0, **options: Any
) -> AssetsDefinition:
    """The table of a job as an asset: it is materialised when the job has caught up. The resource is named `lading`."""

    @asset(name=name or job.replace(".", "_"), kinds={"lading"}, **options)  # type: ignore[untyped-decorator]  # as above
    def loaded(lading: LadingResource) -> MaterializeResult:
        done = lading.run(job, timeout_s=timeout_s, quiet_s=quiet_s)
        told = {"job": job, "table": done.table, "rows_loaded": done.rows_loaded, "rows_bad": done.rows_bad}
        return MaterializeResult(metadata=told)

    return loaded
