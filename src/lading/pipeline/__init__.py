"""One batch, one Spark job: read, map, write, report."""
