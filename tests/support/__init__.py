"""What tests need beside Lading: servers, workers, certificates."""
