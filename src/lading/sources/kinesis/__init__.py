"""Amazon Kinesis Data Streams: shards are partitions, and a child is read only after its parents."""
