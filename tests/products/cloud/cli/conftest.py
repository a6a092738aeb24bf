"""Fixtures of the kernel's tests that these need."""

from cli.conftest import state

__all__ = ["state"]
