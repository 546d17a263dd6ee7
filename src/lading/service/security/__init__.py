"""Who gets in, and what keeps others out."""
