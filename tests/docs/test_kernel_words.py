"""The kernel names no product: what it says of one, it learns from the product's `product.py`.

Looked at are the names and texts of its code, without comments and docstrings, where databases are
named as facts of the field.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from support.documents import ROOT

KERNEL = ROOT / "src" / "tidegate"
WORD = re.compile(
    r"cloud|console|datalog|datalevin|dtlv|duckdb|jdbc|mariadb|mysql|pgedge|pgwire|workbench",
    re.IGNORECASE,
)
REVIEWED = {
    "people answer calls and keep accounts in a console: its address and its settings are given to"
    " approvals, messages and edges, and what happens there is on record by its name": (
        "console",
        "app.py approvals/approvals.py approvals/four_eyes.py approvals/sentence.py"
        " audit/activity_lines.py audit/activity_writing.py cli/arguments/people.py"
        " cli/arguments/serving.py cli/commands/demo.py cli/commands/operator.py"
        " cli/commands/serve.py cli/commands/webhook.py cli/settings.py config/model.py"
        " config/reload.py errors.py identity/operators.py serve/status.py approvals/place.py"
        " workspace/workspace.py",
    ),
    "a server's entry has the address of its console, by which the command finds it": (
        "console", "cli/gate_parent.py serve/lifecycle.py serve/running_servers.py serve/worker.py"
        " serve/worker_channel.py",
    ),
    "where there is no source, a person is sent to the console, which says how to add one": (
        "console", "cli/first_source.py surfaces/core/__init__.py",
    ),
    "a module of the library rich": ("console", "cli/progress.py"),
    "all codes of errors are in one table, which clients and documents read": (
        "datalog cloud", "errors.py",
    ),
    "the library DuckDB writes and reads Parquet, on any source": (
        "duckdb",
        "cli/parquet.py cli/arguments/statements.py config/installation.py imports/extraction.py",
    ),
    "the form of rights on tables whose names are paths": (
        "cloud", "cli/arguments/access.py identity/tokens.py",
    ),
    "a schema that servers of MySQL keep, whatever engine reaches them": (
        "mysql", "config/sources.py sql/dialects/default.py sql/administration.py",
    ),
    "what databases add to SQL, which the judge of every dialect looks for": (
        "duckdb", "sql/masking/derived_tables.py sql/masking/system_catalogs.py"
        " sql/masking/table_allowlist.py sql/tree_checks.py",
    ),
    "the types of each database's own driver, which are a fact of its dialect": (
        "jdbc duckdb", "sql/dialects/model.py",
    ),
    "as above, of one driver": ("jdbc", "sql/dialects/postgres.py sql/dialects/sqlite.py"),
    "the databases in which rows can be searched": ("duckdb", "search/hybrid.py"),
}  # fmt: skip
"""Words that stay, with the modules in which they do, by the reason."""


def texts(tree: ast.Module) -> Iterator[str]:
    """The names and texts in a module's code, without docstrings."""
    said: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            said.add(id(node.value))
    for node in ast.walk(tree):
        if id(node) not in said:
            values = (getattr(node, field, None) for field in node._fields)
            yield from (value for value in values if isinstance(value, str))


def found() -> set[tuple[str, str]]:
    """The modules of the kernel, each with the words of products in its code."""
    files: list[tuple[str, Path]] = [
        (inside, file)
        for file in KERNEL.rglob("*.py")
        if not (inside := file.relative_to(KERNEL).as_posix()).startswith("products/")
    ]
    return {
        (inside, word.lower())
        for inside, file in files
        if WORD.search(code := file.read_text())
        for text in texts(ast.parse(code))
        for word in WORD.findall(text)
    }


def test_the_code_of_the_kernel_names_no_product_but_for_reviewed_reasons() -> None:
    reviewed = {
        (file, word)
        for words, files in REVIEWED.values()
        for file in files.split()
        for word in words.split()
    }
    assert found() == reviewed
