"""The commit protocol: seven steps, three outcomes."""
