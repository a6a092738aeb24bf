"""The words that are names in quotes alone in DuckDB."""

from tidegate.sql.dialects.model import words
from tidegate.sql.dialects.reserved_words import EVERYWHERE

WORDS = EVERYWHERE | words("""
    analyse analyze anti any array asc asof asymmetric at authorization binary both by cast
    collation column concurrently cross deferrable desc describe do end fetch for freeze full
    glob ilike initially inner isnull lambda lateral leading left like natural notnull offset
    only outer overlaps pivot pivot_longer pivot_wider placing positional qualify right semi
    show similar some summarize symmetric tablesample trailing unpack unpivot variadic verbose
    window with
    """)
