"""The words that a dialect does not take for a name unless they are quoted, in lower case: those of
every dialect, and those of PostgreSQL and SQLite. Products have those of theirs.

Found by asking each database for a column and a table of every keyword that it, or another of
them, has: PostgreSQL 18, SQLite 3.54, DuckDB and MariaDB, with MySQL 8's further words. A test asks
again.
"""

from __future__ import annotations

from tidegate.sql.dialects.model import words

_COMMON = words("""
    all and as case check collate constraint create default distinct else except false foreign
    from group having in intersect into is join limit not null on or order primary references
    returning select table then to true union unique using when where
    """)
_SYNTAX = words("""
    alter any between cross cube describe drop fetch for force glob grant ilike inner insert lateral
    like lock notnull offset outer qualify regexp revoke rlike rollup tablesample values window with
    xor
    """)
"""What our analysis of statements reads as syntax in every dialect."""
EVERYWHERE = _COMMON | _SYNTAX

SQLITE = EVERYWHERE | words("""
    add alter between cast commit current_date current_time current_timestamp deferrable delete
    drop escape exists index insert isnull nothing notnull raise set transaction update values
    """)
POSTGRES = EVERYWHERE | words("""
    analyse analyze any array asc asymmetric authorization binary both cast collation column
    concurrently cross current_catalog current_date current_role current_schema current_time
    current_timestamp current_user deferrable desc do end fetch for freeze full grant ilike
    initially inner isnull lateral leading left like localtime localtimestamp natural notnull
    offset only outer overlaps placing right session_user similar some symmetric system_user
    tablesample trailing user variadic verbose window with
    """)
