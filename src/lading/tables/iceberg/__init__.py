"""Iceberg tables through PyIceberg: any catalog it can open, local disks and S3-compatible stores."""
