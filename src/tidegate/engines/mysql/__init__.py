"""MySQL and MariaDB. `MysqlEngine` is the engine; `engine.py` tells how a statement goes."""

from __future__ import annotations

from tidegate.engines.mysql.engine import MysqlEngine

__all__ = ["MysqlEngine"]
