"""Objects on a disk or in a bucket: the one way in which Lading itself reads and writes them."""
