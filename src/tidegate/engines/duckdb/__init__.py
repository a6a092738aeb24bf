"""DuckDB, in worker processes: read-only enforced by DuckDB itself, all other files shut off.

`engine` is the gate's side; `worker` and what it imports (`session`, `execution`, `opinion`,
`values`, `catalog`, `faults`) run in the process that can be killed, and alone import the driver.
"""

from importlib.util import find_spec

from tidegate.engines.duckdb.engine import DuckdbEngine

if find_spec("duckdb") is None:
    raise ModuleNotFoundError("No module named 'duckdb'", name="duckdb")

__all__ = ["DuckdbEngine"]
