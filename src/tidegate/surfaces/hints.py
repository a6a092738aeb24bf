"""What a surface's callers can do where an error speaks of tables, columns or sources.

Errors are the same for all surfaces, and engines know no surface. So their hints say `list the
tables`; a `Guide` says it with the tools that the surface has. A hint that names a facility has to
be one of `TOPICS`: a test collects all hints of the package and compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from tidegate.errors import ERRORS, Code, TidegateError

Topic = Literal["tables", "columns", "sources"]

TOPICS: Mapping[str, Topic] = {
    "Search or list the tables, then use a name from there.": "tables",
    ERRORS[Code.TABLE_UNKNOWN].hint: "tables",
    "Describe the table to see its columns.": "columns",
    "Describe the table to see its columns and their types.": "columns",
    "Check the names and the syntax: describe the table, or search for it.": "columns",
    ERRORS[Code.SOURCE_UNKNOWN].hint: "sources",
    ERRORS[Code.POLICY_SOURCE].hint: "sources",
}


class Guide(msgspec.Struct, frozen=True):
    """The sentences of one surface. `codes` are its hints for errors that have no other than that
    of their code."""

    tables: str
    columns: str
    sources: str
    codes: Mapping[Code, str] = {}

    def hint(self, error: TidegateError) -> str:
        """What to do, in words that exist on the surface."""
        if error.hint == error.mapping.hint and error.code in self.codes:
            return self.codes[error.code]
        match TOPICS.get(error.hint):
            case "tables":
                return self.tables
            case "columns":
                return self.columns
            case "sources":
                return self.sources
            case _:
                return error.hint
