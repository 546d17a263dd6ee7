"""The same access in the words of libraries that have clients of their own.

They follow redirects and look names up by themselves, so where a statement names an endpoint they get a proxy that
leads there only. It is of this process: what is made here must not be pickled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lading.model.s3_access import S3Access
from lading.net.gate import gate_address

if TYPE_CHECKING:
    import pyarrow.fs as pafs


def arrow_filesystem(access: S3Access) -> pafs.S3FileSystem:
    """pyarrow."""
    import pyarrow.fs as pafs

    given: dict[str, Any] = {
        "endpoint_override": access.endpoint,
        "region": access.region,
        "access_key": access.access_key,
        "secret_key": access.secret_key,
        "session_token": access.session_token,
        "force_virtual_addressing": bool(access.endpoint) and not access.path_style,
    }
    if access.endpoint:
        given["proxy_options"] = gate_address(access.endpoint, access.addresses).arrow_options
    return pafs.S3FileSystem(**{key: value for key, value in given.items() if value})


def delta_options(access: S3Access) -> dict[str, str]:
    """delta-rs."""
    given = {
        "AWS_ENDPOINT_URL": access.endpoint,
        "AWS_REGION": access.region,
        "AWS_ACCESS_KEY_ID": access.access_key,
        "AWS_SECRET_ACCESS_KEY": access.secret_key,
        "AWS_SESSION_TOKEN": access.session_token,
        "AWS_ALLOW_HTTP": "true" if access.endpoint.startswith("http://") else "",
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false" if access.path_style else "",
        "aws_conditional_put": "etag",
        "proxy_url": gate_address(access.endpoint, access.addresses).url if access.endpoint else "",
    }
    return {key: value for key, value in given.items() if value}


def iceberg_properties(access: S3Access) -> dict[str, str]:
    """PyIceberg, whose files are pyarrow's."""
    addressing = "false" if access.path_style else "true" if access.endpoint else ""
    given = {
        "s3.endpoint": access.endpoint,
        "s3.region": access.region,
        "s3.access-key-id": access.access_key,
        "s3.secret-access-key": access.secret_key,
        "s3.session-token": access.session_token,
        "s3.force-virtual-addressing": addressing,
        "s3.proxy-uri": gate_address(access.endpoint, access.addresses).url if access.endpoint else "",
    }
    return {key: value for key, value in given.items() if value}
