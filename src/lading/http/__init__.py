"""The HTTP face: a thin view over the façade."""
