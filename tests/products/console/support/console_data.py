"""Sources, tables and tabs as the canned server of the console's page shows them.

Rows are made when they are asked for, so a table may have as many as a test wants.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from products.console.support import console_cards as canned
from products.console.support.console_edits import Edits

Json = dict[str, Any]
Row = list[Any]
Answer = tuple[int, Any]
MANY = 1_200
MOST_SORTED = 5_000


def column(name: str, kind: str = "text", kind_of: str = "", masked: bool = False) -> Json:
    types = {"number": "INTEGER", "text": "TEXT", "time": "TIMESTAMP", "bool": "BOOLEAN"}
    return {
        "name": name,
        "type": kind_of or types.get(kind, kind.upper()),
        "kind": kind,
        "masked": masked,
    }


class Table:
    """A table of the canned server: columns, and a row by its number from 0."""

    def __init__(
        self, columns: list[Json], count: int, row: Callable[[int], Row], **facts: Any
    ) -> None:
        self.columns = columns
        self.count = count
        self.row = row
        self.facts = facts

    def answer(self, name: str, schema: str) -> Json:
        first: Json = {
            "name": name,
            "schema": schema,
            "database": None,
            "kind": "table",
            "comment": "",
            "rows": self.count,
            "ddl": f"CREATE TABLE {name} (\n  id INTEGER PRIMARY KEY\n)",
            "ddl_reason": "",
            "columns": [
                {
                    **each,
                    "nullable": place > 0,
                    "default": None,
                    "generated": "",
                    "key": 1 if place == 0 else None,
                    "comment": "",
                }
                for place, each in enumerate(self.columns)
            ],
            "foreign_keys": [],
            "referenced_by": [],
            "indexes": [
                {
                    "name": f"{name}_pkey",
                    "columns": ["id"],
                    "unique": True,
                    "primary": True,
                    "method": "btree",
                    "partial": "",
                }
            ],
            "triggers": [],
        }
        return {**first, **self.facts}


def place(table: str, *columns: str, schema: str = "main") -> Json:
    return {"database": None, "schema": schema, "table": table, "columns": list(columns)}


def customers() -> Table:
    names = ["Ada Lovelace", canned.RTL, canned.FAMILY + " family", canned.BIDI, "", None]

    def row(n: int) -> Row:
        name = names[n % 8] if n % 8 < len(names) else f"Customer {n}"
        return [str(n + 1), name, "***", '{"vip": true, "tags": ["a", "b"]}', "2026-03-01 10:00:00"]

    columns = [
        column("id", "number"),
        column("name"),
        column("email", masked=True),
        column("settings", "json"),
        column("created_at", "time"),
    ]
    referrer = {"name": "orders_customer", "columns": ["id"], "from": place("orders", "customer")}
    return Table(columns, 500, row, referenced_by=[referrer], comment="People who buy")


def orders() -> Table:
    states = ["open", "paid", "shipped", "returned"]

    def row(n: int) -> Row:
        note = "first line\nsecond line" if n % 5 == 0 else None
        cents = str((n * 7919) % 90_000)
        return [
            str(n + 1),
            str(n % 500 + 1),
            states[n % 4],
            f"{cents[:-2] or 0}.{cents[-2:]:0>2}",
            note,
            "2026-04-01 12:30:00",
        ]

    columns = [
        column("id", "number"),
        column("customer", "number"),
        column("status"),
        column("total", "number", "DECIMAL(10,2)"),
        column("note"),
        column("ordered_at", "time"),
    ]
    key = {"name": "orders_customer", "columns": ["customer"], "to": place("customers", "id")}
    trigger = {"name": "orders_touch", "timing": "AFTER", "event": "UPDATE"}
    return Table(columns, 2_000, row, foreign_keys=[key], triggers=[trigger])


def wide(rows: int = 100_000, columns: int = 100) -> Table:
    """A table for scrolling."""
    kinds = ["number", "text", "time"]
    about = [column("id", "number")]
    about += [column(f"column_{n}", kinds[n % 3]) for n in range(1, columns)]

    def row(n: int) -> Row:
        return [str(n), *(f"{n}:{place}" if place % 7 else None for place in range(1, columns))]

    return Table(about, rows, row)


def small() -> Table:
    return Table([column("id", "number"), column("name")], 3, lambda n: [str(n + 1), f"name {n}"])


def hostile() -> Table:
    text = canned.HOSTILE
    columns = [column("id", "number"), column(text, kind_of=text), column(canned.BIDI)]
    facts: Json = {
        "ddl": text,
        "comment": text,
        "kind": text,
        "foreign_keys": [{"name": text, "columns": [text], "to": place(text, text)}],
        "referenced_by": [{"name": text, "columns": [text], "from": place(text, text)}],
        "indexes": [
            {
                "name": text,
                "columns": [text],
                "unique": True,
                "primary": False,
                "method": text,
                "partial": text,
            }
        ],
        "triggers": [{"name": text, "timing": text, "event": text}],
    }
    return Table(columns, 4, lambda n: [str(n), text, canned.BIDI], **facts)


def source(name: str, color: int, **changes: Any) -> Json:
    first: Json = {
        "name": name,
        "engine": "sqlite",
        "dialect": "sqlite",
        "color": color,
        "state": "open",
        "message": "",
        "language": "sql",
        "saved": True,
        "may": {"read": True, "write": False, "why_not": ""},
    }
    return {**first, **changes}


class Data:
    """What the canned server knows about data; tests change it."""

    def __init__(self, publish: Callable[[str, Json], None]) -> None:
        self._publish = publish
        self.sources = [
            source("shop", 0),
            source("crm", 3, engine="postgresql", dialect="postgres"),
            source(
                "lake",
                6,
                engine="duckdb",
                state="failed",
                message="The file is locked by another process.",
            ),
        ]
        self.tables: dict[tuple[str, str], dict[str, Table]] = {
            ("shop", "main"): {
                "customers": customers(),
                "orders": orders(),
                "wide": wide(),
                **{f"t_{n:04}": small() for n in range(MANY)},
            },
            ("crm", "public"): {"contacts": small(), "deals": small()},
            ("crm", "audit"): {"log": small()},
        }
        self.tabs: dict[str, Json] = {}
        self.closed: list[Json] = []
        self.whole = "a whole value"
        self.lacks: tuple[str, ...] = ()
        self.warnings: list[str] = []
        self._ids = 0
        self.edits = Edits(publish, self._edited)

    # answers

    def get(self, parts: list[str], query: dict[str, str]) -> Answer:
        match parts:
            case ["sources"]:
                return 200, {"sources": self.sources}
            case ["schemas"]:
                return self._schemas(query["source"])
            case ["tables"]:
                return 200, self._tables(query)
            case ["search"]:
                return 200, self._search(query["q"].lower())
            case ["table"]:
                table = self._table(query)
                return 200, table.answer(query["table"], query.get("schema") or "main")
            case ["tabs"]:
                return 200, {"windows": [], "tabs": list(self.tabs.values())}
            case ["edits", "columns"]:
                table = self._table(query).answer(query["table"], query.get("schema") or "main")
                where = {name: query.get(name) for name in ("source", "schema", "table")}
                return 200, self.edits.describe(table, where)
            case ["tabs", key, "edits", *rest] if key in self.tabs:
                return self.edits.get(key, rest)
            case _:
                return 404, refusal("not_found", "It is not here.")

    def post(self, parts: list[str], body: Json) -> Answer:
        match parts:
            case ["rows"]:
                return 200, self._rows(body)
            case ["count"]:
                return 200, {"count": len(self._found(body)), "approximate": False}
            case ["cell"]:
                text = self.whole
                return 200, {"text": text, "bytes": len(text.encode()), "binary": False}
            case ["export-ticket"]:
                return 200, made_file(f"data-{body['format']}", body["format"], *self.lacks)
            case ["tabs"]:
                return 200, self.open(body)
            case ["tabs", "reopen"]:
                if not self.closed:
                    return 404, refusal("tab.none_closed", "No tab was closed.")
                return 200, self._put(self.closed.pop(), "opened")
            case ["tabs", key] if key in self.tabs:
                return self._write(self.tabs[key], body)
            case ["tabs", key, "edits", *rest] if key in self.tabs:
                return self.edits.post(key, rest, body)
            case ["tabs", key, "focus"] if key in self.tabs:
                return 200, self.focus(key)
            case ["tabs", key, "close"] if key in self.tabs:
                return self.close(key)
            case _:
                return 404, refusal("tab.unknown", "There is no such tab.")

    # tabs

    def open(self, body: Json, by: str = "") -> Json:
        """Open a tab as a page does, or as an agent does."""
        same = [
            each
            for each in self.tabs.values()
            if body["kind"] == "table"
            and all(each[name] == body.get(name) for name in ("source", "schema", "table"))
        ]
        if same:
            return self.focus(same[0]["id"], by)
        self._ids += 1
        tab = {
            "id": f"tab-{self._ids}",
            "window": f"window-{body['source']}",
            "source": body["source"],
            "kind": body["kind"],
            "title": body.get("title") or body.get("table") or f"Query {self._ids}",
            "database": body.get("database"),
            "schema": body.get("schema"),
            "table": body.get("table"),
            "text": body.get("text"),
            "position": self._ids,
            "opened_by": by,
            "opened_at": time.time(),
            "focused_at": time.time(),
            "is_active": True,
            "version": 1,
        }
        return self._put(tab, "opened", by)

    def focus(self, key: str, by: str = "") -> Json:
        tab = {**self.tabs[key], "focused_at": time.time(), "is_active": True}
        return self._put(tab, "focused", by)

    def close(self, key: str, by: str = "") -> Answer:
        tab = self.tabs.pop(key)
        self.closed.append(tab)
        self._publish("tab", {"tab": tab, "action": "closed", "by": by})
        return 204, None

    def _write(self, tab: Json, body: Json) -> Answer:
        if body["version"] != tab["version"]:
            return 409, refusal("tab.changed", "Another page has changed the tab.")
        changes = {name: body[name] for name in ("text", "title", "position") if name in body}
        return 200, self._put({**tab, **changes, "version": tab["version"] + 1}, "changed")

    def _put(self, tab: Json, action: str, by: str = "") -> Json:
        self.tabs[tab["id"]] = tab
        if tab["is_active"]:
            for each in self.tabs.values():
                if each["window"] == tab["window"] and each is not tab:
                    each["is_active"] = False
        self._publish("tab", {"tab": tab, "action": action, "by": by})
        return tab

    # tree

    def _schemas(self, name: str) -> Answer:
        schemas = [schema for source, schema in self.tables if source == name]
        if not schemas:
            message = next(each["message"] for each in self.sources if each["name"] == name)
            return 503, refusal("source.failed", message, "Close the other process.")
        return 200, {
            "databases": None,
            "schemas": [
                {
                    "database": None,
                    "name": schema,
                    "tables": len(self.tables[name, schema]),
                    "current": place == 0,
                }
                for place, schema in enumerate(schemas)
            ],
        }

    def _tables(self, query: dict[str, str]) -> Json:
        names = sorted(self.tables[query["source"], query["schema"]])
        first = int(query.get("after") or 0)
        last = first + int(query.get("limit", 200))
        return {
            "tables": [
                {
                    "name": name,
                    "schema": query["schema"],
                    "database": None,
                    "kind": "table",
                    "rows": self.tables[query["source"], query["schema"]][name].count,
                    "comment": "",
                }
                for name in names[first:last]
            ],
            "next": str(last) if last < len(names) else None,
            "total": len(names),
        }

    def _search(self, text: str) -> Json:
        matches: list[Json] = []
        for (source, schema), tables in self.tables.items():
            for name, table in tables.items():
                first = {
                    "source": source,
                    "database": None,
                    "schema": schema,
                    "table": name,
                    "kind": "table",
                    "column": None,
                    "type": None,
                }
                if text in name.lower():
                    matches.append(first)
                matches += [
                    {**first, "column": each["name"], "type": each["type"]}
                    for each in table.columns
                    if text in each["name"].lower()
                ]
        unread = [
            {"source": each["name"], "reason": each["message"]}
            for each in self.sources
            if each["state"] == "failed"
        ]
        return {"matches": matches[:50], "more": len(matches) > 50, "unread": unread}

    # rows

    def _table(self, where: Json | dict[str, str]) -> Table:
        return self.tables[where["source"], where.get("schema") or "main"][where["table"]]

    def _edited(self, where: Json) -> Json | None:
        """The names of the columns of a tab's table."""
        tab = self.tabs[where["tab"]]
        return {"names": [each["name"] for each in self._table(tab).columns]}

    def _found(self, body: Json) -> range | list[int]:
        """The numbers of the rows that the filters leave, in order."""
        table = self._table(body)
        filters, sort = body.get("filters") or [], body.get("sort") or []
        if not filters and (not sort or table.count > MOST_SORTED):
            return range(table.count)
        names = [each["name"] for each in table.columns]
        found = [
            n
            for n in range(table.count)
            if all(_holds(table.row(n)[names.index(each["column"])], each) for each in filters)
        ]
        for each in reversed(sort):
            at = names.index(each["column"])
            number = table.columns[at]["kind"] == "number"

            def value(n: int, at: int = at, number: bool = number) -> tuple[bool, Any]:
                text = table.row(n)[at]
                return text is None, float(text) if number and text is not None else text or ""

            found.sort(key=value, reverse=each["direction"] == "desc")
        return found

    def _rows(self, body: Json) -> Json:
        table, found = self._table(body), self._found(body)
        first = int(body.get("after") or 0)
        last = min(first + body.get("limit", 200), len(found))
        rows = [table.row(n) for n in found[first:last]]
        return {
            "columns": table.columns,
            "rows": rows,
            "keys": [[row[0]] for row in rows],
            "next": str(last) if last < len(found) else None,
            "paging": "keyset",
            "warnings": self.warnings,
            "elapsed_ms": 3,
            "call_id": "call-1",
        }


def _holds(value: Any, condition: Json) -> bool:
    wanted = condition["value"]
    match condition["operator"]:
        case "is null":
            return value is None
        case "is not null":
            return value is not None
        case _ if value is None:
            return False
        case "=":
            return str(value) == wanted
        case "contains":
            return wanted.lower() in str(value).lower()
        case "starts with":
            return str(value).lower().startswith(wanted.lower())
        case ">":
            return float(value) > float(wanted)
        case "<":
            return float(value) < float(wanted)
        case _:
            return True


def made_file(ticket: str, form: str, *notes: str) -> Json:
    """The answer to who asks for a file; with notes, it is not whole."""
    name = f"orders{'.first-2-rows' if notes else ''}.{form}"
    made = {"ticket": ticket, "name": name, "rows": 2, "bytes": 100}
    return {**made, "complete": not notes, "notes": list(notes)}


def refusal(code: str, message: str, hint: str = "") -> Json:
    return {"error": code, "message": message, "hint": hint}
