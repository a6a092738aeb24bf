"""Edits of rows as the canned server of the console's page keeps and submits them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
Answer = tuple[int, Any]
EDITORS = {"number": "integer", "time": "timestamp", "bool": "boolean", "json": "json"}


class Edits:
    """Staged rows by tab, and what the next submission finds; tests change it."""

    def __init__(
        self, publish: Callable[[str, Json], None], about: Callable[[Json], Json | None]
    ) -> None:
        self._publish = publish
        self._about = about
        self.columns: dict[str, Json] = {}
        """What is said of a column besides what its kind tells."""
        self.reason = ""
        self.asks = False
        self.staged: dict[str, dict[str, Json]] = {}
        self.versions: dict[str, int] = {}
        self.results: dict[str, Json] = {}
        self.now: dict[str, Json] = {}
        """Rows by the id of their staged edit, or by their key, that others have changed."""
        self.conflicts: list[Json] = []
        self.exact: Json = {}
        """Whole values by column, for those that a grid shows in part."""
        self._ids = 0

    def describe(self, table: Json, place: Json) -> Json:
        """The answer of `edits/columns`."""
        first = {"nullable": True, "default": None, "has_default": False, "reason": ""}
        more = {"values": None, "length": None, "classes": None, "references": None}
        columns = [
            {
                **first,
                **more,
                "name": each["name"],
                "type": each["type"],
                "editor": EDITORS.get(each["kind"], "text"),
                "key": 1 if at == 0 else None,
                "editable": not each["masked"],
                "reason": "Its values are hidden from you." if each["masked"] else "",
                "masked": each["masked"],
                **({"nullable": False, "has_default": True} if at == 0 else {}),
                **self.columns.get(each["name"], {}),
            }
            for at, each in enumerate(table["columns"])
        ]
        return {
            "table": {"source": place["source"], "database": None, **place},
            "editable": not self.reason,
            "reason": self.reason,
            "asks": self.asks,
            "undo": True,
            "most_rows": 1_000,
            "key": [table["columns"][0]["name"]],
            "columns": columns,
        }

    def get(self, tab: str, rest: list[str]) -> Answer:
        match rest:
            case []:
                return 200, {**self._state(tab), "table": None, "result": self.results.get(tab)}
            case ["sql"]:
                count = len(self.staged.get(tab, {}))
                text = 'UPDATE orders SET status = "x" WHERE id = 1;\n' * count
                more = {"statements": count, "shown": count, "verdict": "ask", "why": ""}
                return 200, {"text": text, "spans": None, **more}
            case ["result"]:
                return 200, self.results.get(tab)
            case _:
                return 404, {"error": "not_found", "message": "It is not here.", "hint": ""}

    def post(self, tab: str, rest: list[str], body: Json) -> Answer:
        match rest:
            case []:
                return self._put(tab, body)
            case ["submit"]:
                return self._submit(tab)
            case ["cancel"]:
                return 200, self._end(tab, "cancelled", message="You cancelled it.")
            case _:
                return 404, {"error": "not_found", "message": "It is not here.", "hint": ""}

    def finish(self, tab: str, state: str = "done") -> None:
        """End what was submitted, as an answer of a person would."""
        self._end(tab, state)

    def _state(self, tab: str) -> Json:
        rows = [each for each in self.staged.get(tab, {}).values() if self._counts(each)]
        counts = {
            kind: sum(each["kind"] == kind for each in rows)
            for kind in ("insert", "update", "delete")
        }
        return {"version": self.versions.get(tab, 0), "rows": rows, "counts": counts}

    @staticmethod
    def _counts(row: Json) -> bool:
        return row["kind"] != "update" or bool(row["cells"])

    def _put(self, tab: str, body: Json) -> Answer:
        rows = self.staged.setdefault(tab, {})
        if body["version"] != self.versions.get(tab, 0):
            answer = {"error": "tab.changed", "message": "Another page has changed the edits."}
            return 409, {**answer, **self._state(tab)}
        problems: list[Json] = []
        put: list[Json] = []
        if body.get("clear"):
            rows.clear()
        for id in body["remove"]:
            rows.pop(id, None)
        for each in body["put"]:
            key = (each.get("key") or [""])[0]
            if key in self.now and each.get("seen"):
                now = self.now[key]
                problem = {"id": each["id"], "problem": "changed", "message": "", "now": now}
                problems.append(problem)
                continue
            before = rows.get(each["id"], {}).get("before")
            if before is None and each.get("key"):
                shown = zip(body["columns"], each.get("seen") or [], strict=False)
                before = {name: self._exact(name, value) for name, value in shown}
            row = {"key": None, "cells": {}, **each, "before": before}
            row.pop("seen", None)
            rows[each["id"]] = row
            put.append(row)
        self.versions[tab] = self.versions.get(tab, 0) + 1
        self._publish("edits", {"tab": tab, "version": self.versions[tab]})
        return 200, {**self._state(tab), "rows": put, "problems": problems}

    def _exact(self, name: str, value: Any) -> Any:
        if name in self.exact and isinstance(value, dict):
            return self.exact[name]
        return None if value is None else {"text": value}

    def _submit(self, tab: str) -> Answer:
        self._ids += 1
        counts = self._state(tab)["counts"]
        state = "asking" if self.asks else "conflict" if self.conflicts else "done"
        self.results[tab] = {
            "id": f"s{self._ids}", "tab": tab, "state": "running", "started_at": time.time(),
            "ended_at": None, "elapsed_ms": 3, "counts": counts, "change_id": None,
            "approval": "ask-1" if self.asks else None, "call_id": "", "code": "", "message": "",
            "hint": "", "columns": [], "rows": [], "conflicts": [], "conflict_count": 0,
            "notes": [],
        }  # fmt: skip
        if state == "asking":
            self.results[tab]["state"] = "asking"
            return 200, self.results[tab]
        return 200, self._end(tab, state)

    def _end(self, tab: str, state: str, **more: Any) -> Json:
        found = {**self.results[tab], "state": state, "ended_at": time.time(), **more}
        if state == "conflict":
            found |= {"conflicts": self.conflicts, "conflict_count": len(self.conflicts)}
        if state == "done":
            found["columns"] = list((self._about({"tab": tab}) or {}).get("names", []))
            found["rows"] = [self._stored(each, found["columns"]) for each in self._rows(tab)]
            self.staged[tab] = {}
            self.versions[tab] = self.versions.get(tab, 0) + 1
        self.results[tab] = found
        self._publish("edit", found)
        return found

    def _rows(self, tab: str) -> list[Json]:
        return [each for each in self.staged.get(tab, {}).values() if self._counts(each)]

    @staticmethod
    def _stored(row: Json, columns: list[str]) -> Json:
        """A row as a trigger leaves it, which writes the word `stored` into the notes."""
        cells = {**(row["before"] or {}), **row["cells"], "note": {"text": "stored"}}
        shown = [(cells.get(name) or {}).get("text") for name in columns]
        key = row["key"] or ["9001"]
        gone = row["kind"] == "delete"
        if row["kind"] == "insert" and columns:
            shown[0] = "9001"
        kind = {"id": row["id"], "kind": row["kind"], "key": key}
        return {**kind, "row": None if gone else shown}
