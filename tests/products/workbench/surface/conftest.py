"""Fixtures of the kernel's tests that these need."""

from contract.surfaces.conftest import engine_shop

__all__ = ["engine_shop"]
