"""The reference engine: a few tables in memory and a tiny language, enough for the contract suite.

It shows what the contract asks, without a database in the way. Its statements, one at a time, with
an optional `;` behind:

    ROWS n [w]      n rows: the numbers from 1, and a text of w bytes
    VALUES          one row with a value of every type that a result may hold
    ECHO            one row of the parameters that were given
    TABLE name      every row of a table
    COUNT name      how many rows a table has
    SLEEP s         one row, after s seconds
    FAIL text       an error with this text
    APPEND name     adds the parameters as a row to a table, and returns that row
"""

from __future__ import annotations

from tidegate.engines.memory.engine import MemoryEngine
from tidegate.engines.memory.shop import VALUES

__all__ = ["VALUES", "MemoryEngine"]
