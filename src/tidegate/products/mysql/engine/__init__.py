"""MySQL and MariaDB, through asyncmy, on the event loop.

Beside the ten files of every engine: `command_protocol.py` has packets, commands and replies.
"""

from __future__ import annotations

from tidegate.products.mysql.engine.engine import MysqlEngine

__all__ = ["MysqlEngine"]
