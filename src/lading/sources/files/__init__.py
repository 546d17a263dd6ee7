"""Files in S3 or in a local folder as a source: listing and planning on the driver, reading in executors."""
