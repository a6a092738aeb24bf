"""What a line of the terminal asks for, and how results are printed: in Node, as in the page."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from external.install import node
from products.console.support.console_site import PAGE

SCRIPT = """
import { isWhole, read } from "./terminal_words.js";
import { expandedText, tableText } from "./terminal_table.js";
const known = { isWhole, read, expandedText, tableText };
const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const calls = JSON.parse(chunks.join(""));
console.log(JSON.stringify(calls.map(([name, ...args]) => known[name](...args))));
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("terminal")
    for name in ("terminal_words.js", "terminal_table.js"):
        shutil.copy(PAGE / name, found / name)
    (found / "package.json").write_text('{"type": "module"}')
    (found / "run.js").write_text(SCRIPT)
    return found


def asked(folder: Path, *calls: list[Any]) -> list[Any]:
    done = subprocess.run(
        [node(), folder / "run.js"], input=json.dumps(calls), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


def test_words_about_transactions_are_known_in_sql_alone(folder: Path) -> None:
    found = asked(
        folder,
        ["read", "begin;", True],
        ["read", "START TRANSACTION READ ONLY;", True],
        ["read", "end work", True],
        ["read", "abort;", True],
        ["read", 'SAVEPOINT "A b";', True],
        ["read", "rollback to savepoint X", True],
        ["read", "release x;", True],
        ["read", "BEGIN SELECT 1; END;", True],
        ["read", "begin", False],
        ["read", "\\d  orders ;", True],
    )
    assert found == [
        {"kind": "begin", "readsOnly": False},
        {"kind": "begin", "readsOnly": True},
        {"kind": "end", "action": "commit"},
        {"kind": "end", "action": "rollback"},
        {"kind": "mark", "action": "savepoint", "name": "A b"},
        {"kind": "mark", "action": "rollback to", "name": "x"},
        {"kind": "mark", "action": "release", "name": "x"},
        {"kind": "statement", "text": "BEGIN SELECT 1; END;"},
        {"kind": "statement", "text": "begin"},
        {"kind": "meta", "word": "d", "rest": "orders"},
    ]


def test_enter_sends_what_is_whole(folder: Path) -> None:
    query = "[:find ?n :where [?e :name ?n]"
    found = asked(
        folder,
        ["isWhole", "SELECT 1", True],
        ["isWhole", "SELECT 1;", True],
        ["isWhole", "commit", True],
        ["isWhole", "\\dt", True],
        ["isWhole", query, False],
        ["isWhole", f"{query}]", False],
        ["isWhole", '[:find ?n :where [?e :name "a]"]', False],
    )
    assert found == [False, True, True, True, False, True, False]


def test_results_are_printed_in_columns_or_line_by_line(folder: Path) -> None:
    heads = [{"name": "id", "kind": "number"}, {"name": "name", "kind": "text"}]
    rows = [["1", "Ada"], ["20", None], ["3", "one\ntwo 東京"]]
    table, expanded = asked(folder, ["tableText", heads, rows], ["expandedText", heads, rows[:1]])
    assert table.split("\n") == [
        " id | name",
        "----+--------------",
        "  1 | Ada",
        " 20 | NULL",
        "  3 | one↵two 東京",
    ]
    assert expanded.split("\n") == ["-[ record 1 ]-", "id   | 1", "name | Ada"]
