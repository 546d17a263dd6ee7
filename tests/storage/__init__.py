"""Objects on a disk and in buckets: what every store promises."""
