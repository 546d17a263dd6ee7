"""Everything to put a consumer of Kinesis to the test: a fake, a server, a generator, reshards, faults, a verifier."""
