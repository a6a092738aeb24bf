"""Fixtures of the kernel's tests that these need."""

from cli.conftest import run, state

__all__ = ["run", "state"]
