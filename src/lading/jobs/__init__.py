"""The life of a job: its record, the events that change it, and how it is shown. Pure: no I/O, no clock."""
