"""Topics of Kafka: offsets are planned on the driver, records are read by assignment in executors."""
