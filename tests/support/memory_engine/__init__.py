"""An engine that speaks no SQL: a few tables in memory, a tiny language, and operations.

It is for tests only, and it is the worked example of CONTRIBUTING.md: an engine (`engine.py`,
`cursor.py`, `tables.py`) and its language (`language.py`), joined by one `EngineEntry`. Its
statements, one at a time, with an optional `;` behind:

    ROWS n [w]            n rows: the numbers from 1, and a text of w bytes
    VALUES                one row with a value of every type that a result may hold
    ECHO                  one row of the parameters that were given
    TABLE name            every row of a table
    COUNT name            how many rows a table has
    SLEEP s               one row, after s seconds
    FAIL text             an error with this text
    APPEND name [values]  adds the values, or the parameters, as a row, and returns that row
    CLEAR name            removes every row of a table

Its operations (`requests.Operation`) answer with a document:

    table.read {table}            {"table": ..., "rows": [{...}, ...]}
    row.add {table, row}          {"added": 1}
    table.clear {table}           {"removed": n}
    basket.open {}                {"basket": id}, a list that belongs to the caller
    basket.put {basket, item}     {"items": n}
    basket.read {basket}          {"items": [...]}
    basket.close {basket}         {"closed": true}

A source may have the options `version`, which its status shows, and `password`, which must be
`open sesame` if it is given.

`memory://` is a database of its own for each connection, `memory://NAME` one that all connections
of the process share.
"""

from __future__ import annotations

from support.memory_engine.engine import DATABASES, MemoryEngine
from support.memory_engine.language import LANGUAGE
from support.memory_engine.tables import VALUES
from tidegate.engines.registry import ENGINES
from tidegate.product import EngineEntry

ENTRY = EngineEntry(
    *("memory", "memory", "support.memory_engine", "MemoryEngine"),
    language="support.memory_engine",
    options=("version", "password"),
)
ENGINES["memory"] = ENTRY

__all__ = ["DATABASES", "ENTRY", "LANGUAGE", "VALUES", "MemoryEngine"]
