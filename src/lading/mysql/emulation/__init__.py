"""What clients expect of a MySQL server around Lading's own statements."""
