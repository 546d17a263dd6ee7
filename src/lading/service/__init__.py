"""The shell: wiring, threads, the façade."""
