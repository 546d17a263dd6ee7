"""Delta tables: the log entry is written by Lading, everything else by delta-rs."""
