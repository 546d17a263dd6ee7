"""Which hosts a definition names, and by which rules a job may connect to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from lading.deferred import deferred
from lading.ids import JobId
from lading.model.load import SourceSpec
from lading.model.pairs import on_side, single_sources
from lading.net.addresses import AddressRules
from lading.service.security.endpoints import Endpoint, Endpoints, endpoints_of, job_subject

if TYPE_CHECKING:
    from lading.sources.files.properties import is_s3_uri
else:
    is_s3_uri = deferred("lading.sources.files.properties", "is_s3_uri")


def job_rules(endpoints: Endpoints, job_id: JobId, source: SourceSpec, *, is_trusted: bool = False) -> AddressRules:
    """Check the hosts of a job that is opened now, and say by which rules it may connect. Raises ConfigError.

    `is_trusted`: somebody with ADMIN on everything looks at a definition that is not the job's yet.
    """
    named = hosts_of(source)
    trusted: Iterable[Endpoint] = named if is_trusted else ()
    return endpoints.rules_for(job_subject(job_id), named, trusted)


def hosts_of(source: SourceSpec) -> tuple[Endpoint, ...]:
    """The hosts that a source names; those of a pair under the names of its properties."""
    found = list[Endpoint]()
    for side, single in single_sources(source).items():
        named = single.properties
        hosts = endpoints_of(named, bucket=_bucket(named.get("uri", ""), named))
        found += [replace(each, property=on_side(side, each.property)) for each in hosts]
    return tuple(found)


def table_hosts(properties: Mapping[str, str], location: str) -> tuple[Endpoint, ...]:
    """The hosts that a table in a bucket names."""
    return endpoints_of(properties, bucket=_bucket(location, properties))


def _bucket(uri: str, properties: Mapping[str, str]) -> str:
    """The bucket where it becomes a part of the name of the host."""
    if not is_s3_uri(uri) or properties.get("use_path_style", "").strip().lower() == "true":
        return ""
    return uri.strip().partition("://")[2].partition("/")[0]
