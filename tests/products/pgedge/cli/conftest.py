"""Fixtures of the kernel's tests that these need."""

from cli.conftest import database, run, state, towns

__all__ = ["database", "run", "state", "towns"]
