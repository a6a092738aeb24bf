"""Statements of any length, by shape: what an attacker sends to keep the judge busy."""

from __future__ import annotations

from collections.abc import Iterator


def long_texts(length: int) -> Iterator[tuple[str, str]]:
    """The name of each shape, and a statement of it that is nearly `length` characters long."""
    for name, (start, part, between, end) in _SHAPES.items():
        count = (length - len(start) - len(end)) // (len(part) + len(between))
        yield name, start + between.join([part] * max(1, count)) + end


_WHERE = "SELECT 1 FROM items WHERE "
_SHAPES = {
    "disjunction": (_WHERE, "id = 1", " OR ", ""),
    "sum": ("SELECT ", "1", "+", ""),
    "columns": ("SELECT ", "id", ",", " FROM items"),
    "list": (_WHERE + "id IN (", "1", ",", ")"),
    "union": ("", "SELECT 1", " UNION ", ""),
    "negations": ("SELECT ", "NOT", " ", " 1"),
    "signs": ("SELECT ", "-", " ", " 1"),
    "case": ("SELECT CASE ", "WHEN id = 1 THEN 1", " ", " END FROM items"),
    "calls": ("SELECT ", "abs(1)", ",", ""),
    "casts": ("SELECT ", "CAST(1 AS int)", ",", ""),
    "joins without ON": ("SELECT 1 FROM items ", "JOIN items", " ", ""),
    "outer joins without ON": ("SELECT id -> '$' FROM items ", "LEFT JOIN items", " ", ""),
    "tables": ("SELECT 1 FROM ", "items a", ",", ""),
    "rows": ("INSERT INTO items VALUES ", "(1,2)", ",", ""),
    "changed columns": ("UPDATE items SET ", "id=1", ",", ""),
    "brackets": ("SELECT " + "(" * 60, "1", "+", ")" * 60),
    "many brackets": ("SELECT ", "(" * 20 + "1" + ")" * 20, ",", ""),
    "named queries": ("WITH ", "a AS (SELECT 1)", ",", " SELECT 1"),
    "strings": ("SELECT ", "'a'", ",", ""),
    "names": ("SELECT ", '"id"', ",", " FROM items"),
    "qualified names": ("SELECT ", "a.items.id", ",", " FROM items"),
    "one string": ("SELECT '", "a", "", "'"),
    "comment": ("SELECT 1 /*", "token", " ", "*/"),
    "secrets": ("SELECT /* password */ ", "'token'", ",", " AS password"),
    "ranges": (_WHERE, "id BETWEEN 1 AND 2", " AND ", ""),
    "windows": ("SELECT ", "sum(id) OVER (PARTITION BY id)", ",", " FROM items"),
    "nested queries": ("SELECT ", "(SELECT 1)", ",", ""),
    "definitions": ("CREATE TABLE x(", "a int", ",", ")"),
    "open": ("SELECT ", "(", "", ""),
    "quotes": ("SELECT ", "'", " ", ""),
}
