"""Tables: in memory, Delta, Iceberg; and the storage they stand on."""
