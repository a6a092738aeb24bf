"""Any database with a JDBC driver, through a JVM of its own (`products/jdbc/engine/jvm`).

`products.py` says what is known of single databases, and `url.py` reads their URLs; the registry
uses both before anything is opened. `engine.py` and what it imports run statements.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """The engine, imported when the first source is opened."""
    if name == "JdbcEngine":
        from tidegate.products.jdbc.engine.engine import JdbcEngine

        return JdbcEngine
    raise AttributeError(name)
