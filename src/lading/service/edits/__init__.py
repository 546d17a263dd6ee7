"""Changes of jobs that hold positions and rows."""
