"""Fakes that ship with Lading: a source that reshards, a table that forgets to answer, a simulator and a verifier.

Nothing outside this package imports it, except the commands that run it.
"""
