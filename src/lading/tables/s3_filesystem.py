"""pyarrow's S3, which follows redirects, kept to the one endpoint that it was given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.fs as pafs

from lading.net.gate import gate_address

if TYPE_CHECKING:
    from lading.tables.storage import StorageOptions


def s3_filesystem(options: StorageOptions) -> pafs.S3FileSystem:
    """A file system for this process only: it must not be pickled, because its proxy is here."""
    given: dict[str, Any] = {
        "endpoint_override": options.endpoint or None,
        "region": options.region or None,
        "access_key": options.access_key or None,
        "secret_key": options.secret_key or None,
        "session_token": options.session_token or None,
        "force_virtual_addressing": bool(options.endpoint) and not options.path_style,
    }
    if options.endpoint:
        given["proxy_options"] = gate_address(options.endpoint, options.addresses).arrow_options
    return pafs.S3FileSystem(**{key: value for key, value in given.items() if value})
