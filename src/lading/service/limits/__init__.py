"""What bounds a caller's use of memory, time and files."""
