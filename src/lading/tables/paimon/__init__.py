"""Paimon append tables: manifests are written by pypaimon, the snapshot is put by Lading."""
