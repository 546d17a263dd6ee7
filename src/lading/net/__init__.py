"""Where the service may connect to on behalf of a statement."""
