"""What people are shown of jobs."""
