"""DuckDB, in worker processes: read-only enforced by DuckDB, all other files shut off.

A source is a database (`engine.py`) or a folder of files (`files_engine.py`, whose workers use
`folder.py`, `spreadsheets.py` and, beside this package, `folder_files.py`).

`engine.py`, `cursor.py`, `url.py` and `messages.py` are the server's side. `worker.py` and what it
imports run in a process that can be killed, and they alone import the driver.
"""

from importlib.util import find_spec
from typing import Any

if find_spec("duckdb") is None:
    raise ModuleNotFoundError("No module named 'duckdb'", name="duckdb")


def __getattr__(name: str) -> Any:
    """The engines, imported when asked for: a worker imports this package too, and not them."""
    if name == "DuckdbEngine":
        from tidegate.products.duckdb.engine.engine import DuckdbEngine

        return DuckdbEngine
    if name == "FilesEngine":
        from tidegate.products.duckdb.engine.files_engine import FilesEngine

        return FilesEngine
    raise AttributeError(name)
