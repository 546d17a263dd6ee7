"""What jobs keep between batches."""
