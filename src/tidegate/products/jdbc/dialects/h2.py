"""H2, as tables of data: what the default dialect knows, with H2's strings and names.

It reads `//` as a comment up to the end of the line, as HSQLDB and others do not, so that `//` is
refused. Of its functions only those that compute are listed: FILE_READ, FILE_WRITE, CSVREAD,
CSVWRITE, LINK_SCHEMA and their like reach outside the database. Aliases run Java code, so that
CREATE ALIAS is no change of data. Source: H2's reference of functions and of the SQL grammar,
version 2.
"""

from __future__ import annotations

from msgspec import structs

from tidegate.sql.dialects import default
from tidegate.sql.dialects.common import PREDICATES
from tidegate.sql.dialects.model import LexicalRules

DIALECT = structs.replace(
    default.DIALECT,
    name="h2",
    title="H2",
    has_information_schema=True,
    lexical_rules=LexicalRules(
        operators=PREDICATES | {"||"},
        comments="ambiguous",
        slash_comments=True,
        executable_comments=True,
        backslashes="plain",
        string_prefixes="xXnN",
    ),
    # Other sessions' statements.
    secrets=(
        *default.DIALECT.secrets,
        "information_schema.sessions",
        "information_schema.query_statistics",
        "information_schema.session_state",
    ),
    reads_files=False,
    remotes=False,
    folds_quoted=False,
    text_type="VARCHAR",
)
