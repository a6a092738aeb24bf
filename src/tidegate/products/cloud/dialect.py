"""SQL over cloud providers: SQLite, which runs it, with the functions that StackQL adds."""

from __future__ import annotations

from msgspec import structs

from tidegate.sql.dialects import sqlite
from tidegate.sql.dialects.model import words

FUNCTIONS = words(
    "aws_policy_equal json_equal regexp_like regexp_replace regexp_substr split_part string"
)
"""What the engine adds to SQLite's own functions."""

DIALECT = structs.replace(
    sqlite.DIALECT,
    name="cloud",
    title="SQL over cloud providers",
    functions=sqlite.DIALECT.functions | FUNCTIONS,
    in_files=False,
    table_forms="",
    path_schemas=True,
    tables_take_arguments=False,
    # What SQLite says of its own tables and plans, which do not exist here.
    trigger_query="",
    plan_format="",
)
