"""Sends files to the Data page and imports them, as its page does."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from support.console_visitor import Visitor
from support.data_desk import answer
from support.eventually import wait_until

PART = 1_048_576


def send(visitor: Visitor, content: bytes, name: str = "rows.csv") -> dict[str, Any]:
    """The import of a file that was sent whole."""
    found: dict[str, Any] = answer(
        visitor.post("data/imports", {"name": name, "size": len(content)})
    )
    for at in range(0, len(content), PART):
        data = base64.b64encode(content[at : at + PART]).decode()
        found = answer(visitor.post(f"data/imports/{found['id']}/part", {"at": at, "data": data}))
    return found


def check(
    visitor: Visitor, found: Mapping[str, Any], table: str, source: str = "lite", **fields: Any
) -> dict[str, Any]:
    """The run of an import whose rows were checked; its columns go where they are named so."""
    columns = [
        {"place": place, "column": each["name"]} for place, each in enumerate(found["columns"])
    ]
    body = {"source": source, "table": table, "columns": columns, **fields}
    answer(visitor.post(f"data/imports/{found['id']}/check", body))
    return ended(visitor, found["id"], ("checking",))


def submit(visitor: Visitor, id: str) -> dict[str, Any]:
    """The run of an import that has ended."""
    answer(visitor.post(f"data/imports/{id}/submit", {}))
    return ended(visitor, id, ("running", "asking"))


def ended(visitor: Visitor, id: str, states: tuple[str, ...]) -> dict[str, Any]:
    """The run once it is in none of these states."""

    def look() -> dict[str, Any] | None:
        run: dict[str, Any] = answer(visitor.get(f"data/imports/{id}"))["run"]
        return run if run["state"] not in states else None

    found = wait_until(look, "the end of the import")
    assert found is not None
    return found
