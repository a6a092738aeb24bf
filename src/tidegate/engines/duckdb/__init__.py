"""DuckDB, in worker processes: read-only enforced by DuckDB, all other files shut off.

`engine.py`, `cursor.py`, `url.py` and `messages.py` are the server's side. `worker.py` and what it
imports run in a process that can be killed, and they alone import the driver.
"""

from importlib.util import find_spec

from tidegate.engines.duckdb.engine import DuckdbEngine

if find_spec("duckdb") is None:
    raise ModuleNotFoundError("No module named 'duckdb'", name="duckdb")

__all__ = ["DuckdbEngine"]
