"""Fixtures of the kernel's tests that these need."""

from contract.engines.conftest import case

__all__ = ["case"]
