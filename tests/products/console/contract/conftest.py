"""The contract of a surface's engines."""

from __future__ import annotations

from contract.surfaces.conftest import engine_shop

__all__ = ["engine_shop"]
