"""Statements as the canned server of the console's page judges, completes, runs and explains them.

It knows a few statements by words in them, and holds a run open until a test ends it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from threading import Event
from typing import Any

from products.console.support import console_cards as canned

Json = dict[str, Any]
Answer = tuple[int, Any]
PIECE = re.compile(r"--[^\n]*|'(?:[^']|'')*'|\"[^\"]*\"|\s+|\w+|.", re.DOTALL)
KEYWORDS = {
    "select",
    "from",
    "where",
    "update",
    "set",
    "delete",
    "join",
    "on",
    "order",
    "by",
    "drop",
}
EFFECTS = {"select": "read", "update": "write", "delete": "write", "drop": "destructive"}
VERDICTS = {"read": "allow", "write": "ask", "destructive": "deny"}
OPEN = {"running", "asking"}
WAIT_S = 20
CATALOGUE = {
    "customers": ("table", "shop"),
    "orders": ("table", "shop"),
    "customer": ("column", "INTEGER"),
    "status": ("column", "TEXT"),
    "total": ("column", "DECIMAL(10,2)"),
    "count": ("function", ""),
    "SELECT": ("keyword", ""),
}


def kind(piece: str) -> str:
    if piece.isspace():
        return "space"
    if piece.startswith("--"):
        return "comment"
    if piece.startswith("'"):
        return "string"
    if piece.isdigit():
        return "number"
    if piece.lower() in KEYWORDS:
        return "keyword"
    return "name" if piece[0].isalnum() or piece[0] in '_"' else "operator"


def bare(text: str) -> str:
    """Without comments."""
    return re.sub(r"--[^\n]*", "", text)


def units(text: str) -> int:
    """The length as JavaScript counts it."""
    return len(text.encode("utf-16-le")) // 2


def split(text: str) -> list[tuple[int, int, str]]:
    """The statements of a text: where each begins and ends, in units, and its text."""
    found: list[tuple[int, int, str]] = []
    at = start = 0
    part = ""
    for piece in [*PIECE.findall(text), ";"]:
        if piece == ";":
            if bare(part).strip():
                found.append((start, at, part))
            part, start = "", at + 1
        else:
            part += piece
        at += units(piece)
    return found


class Statements:
    """What the canned server knows about statements; tests change it."""

    def __init__(self, publish: Callable[[str, Json], None], ask: Callable[[Json], Json]) -> None:
        self._publish = publish
        self._ask = ask
        self.runs: dict[str, Json] = {}
        self.again: dict[str, Json] = {}
        """What runs each again."""
        self.columns: list[Json] = [
            {"name": "id", "type": "INTEGER", "kind": "number", "masked": False},
            {"name": "name", "type": "TEXT", "kind": "text", "masked": False},
        ]
        self.rows: Callable[[int], list[Any]] = lambda n: [str(n + 1), f"customer {n + 1}"]
        self.count = 3
        self.items: list[Json] = [
            {"label": name, "insert": name, "kind": kind, "detail": detail}
            for name, (kind, detail) in CATALOGUE.items()
        ]
        self.failure: Json = {
            "code": "engine.statement",
            "message": 'There is no column "nmae".',
            "hint": 'Did you mean "name"?',
        }
        self.progress: Json | None = None
        self.change: str | None = "change-1"
        self.gone: set[str] = set()
        self.history: list[Json] = [
            {
                "statement": f"SELECT * FROM orders WHERE id = {n}",
                "source": "shop" if n % 2 else "crm",
                "at": time.time() - 60 * n,
                "ok": n % 5 != 0,
                "rows": None if n % 5 == 0 else n,
                "ms": 1.5 * n,
            }
            for n in range(1, 61)
        ]
        self.plan: Json = plan()
        self.most = 100
        """Statements of a text that are judged."""
        self.held: dict[str, Event] = {}
        """Texts that are answered about only when their event is set."""

    def get(self, parts: list[str], query: dict[str, str]) -> Answer | None:
        match parts:
            case ["runs"]:
                found = [r for r in self.runs.values() if r["tab"] == query["tab"]]
                return 200, {"runs": [{**each, **self.again[each["id"]]} for each in found]}
            case ["runs", key, *_] if key in self.gone:
                return 410, _refusal("result.gone", "The result is no longer held.")
            case ["runs", key] if key in self.runs:
                return 200, self.runs[key]
            case ["runs", key, "rows"] if key in self.runs:
                first = int(query["offset"])
                last = min(first + int(query["limit"]), self.runs[key]["row_count"])
                rows = [self.rows(n) for n in range(first, last)]
                return 200, {"rows": rows, "row_count": self.runs[key]["row_count"]}
            case ["runs", key, "cell"] if key in self.runs:
                text = "a long value " * 500
                return 200, {"text": text, "bytes": len(text), "binary": False}
            case ["history"]:
                return 200, self._history(query)
            case _:
                return None

    def post(self, parts: list[str], body: Json) -> Answer | None:
        match parts:
            case ["judge"]:
                self._wait(body["statement"])
                return 200, self.judge(body["statement"])
            case ["complete"]:
                self._wait(body["statement"])
                return 200, self._complete(body["statement"], body["at"])
            case ["runs"]:
                return 200, self._run(body)
            case ["runs", key, "cancel"] if key in self.runs:
                if self.runs[key]["state"] in OPEN:
                    self.end(key, state="cancelled", message="The database has ended it.")
                return 200, self.runs[key]
            case ["runs", key, "close"]:
                self.runs.pop(key, None)
                return 204, None
            case ["explain"]:
                return 200, self.plan
            case _:
                return None

    def _wait(self, text: str) -> None:
        if held := self.held.get(text):
            held.wait(WAIT_S)

    def judge(self, text: str) -> Json:
        wrong = text.find("SELEC ")
        statements = [self._judged(*each) for each in split(text)[: self.most]]
        return {
            "statements": statements,
            "spans": [[kind(piece), piece] for piece in PIECE.findall(text)],
            "error": None
            if wrong < 0
            else {"message": "SELEC is no statement.", "at": units(text[:wrong])},
        }

    def _judged(self, start: int, end: int, text: str) -> Json:
        effect = EFFECTS.get(bare(text).split()[0].lower(), "unknown")
        verdict = VERDICTS.get(effect, "deny")
        return {
            "start": start,
            "end": end,
            "effect": effect,
            "tables": re.findall(r"(?:FROM|JOIN|UPDATE|TABLE)\s+(\w+)", text, re.IGNORECASE),
            "verdict": verdict,
            "why": {"allow": "", "ask": "", "deny": "the source refuses it"}[verdict],
        }

    def _complete(self, text: str, at: int) -> Json:
        word = re.search(r"\w*$", text.encode("utf-16-le")[: 2 * at].decode("utf-16-le"))
        typed = word.group() if word else ""
        items = [each for each in self.items if each["label"].lower().startswith(typed.lower())]
        return {"from": at - len(typed), "to": at, "items": items}

    def _run(self, body: Json) -> Json:
        key = f"r{len(self.runs) + 1}-{time.monotonic_ns()}"
        text = body["statement"]
        first_word = bare(text).split()[0].lower()
        self.again[key] = {"statement": text, "params": body.get("params")}
        self.runs[key] = {
            "id": key,
            "tab": body["tab"],
            "source": body["source"],
            "state": "running",
            "started_at": time.time(),
            "ended_at": None,
            "progress": self.progress,
            "columns": [],
            "row_count": 0,
            "truncated": False,
            "limit": body.get("max_rows") or 10_000,
            "affected": None,
            "elapsed_ms": 1,
            "code": "",
            "message": "",
            "hint": "",
            "at": None,
            "approval": None,
            "change_id": None,
            "call_id": "call-1",
            "effect": EFFECTS.get(first_word, "unknown"),
            "warnings": [],
        }
        wrong = text.find("nmae")
        if wrong >= 0:
            self.end(key, state="failed", at=units(text[:wrong]), **self.failure)
        elif "slow" in text:
            pass
        elif first_word == "update":
            card = canned.card(len(self.runs), statement=canned.tokens(text))
            self._ask(card)
            self.runs[key] |= {"state": "asking", "approval": card["id"]}
        else:
            self.end(key, columns=self.columns, row_count=self.count)
        return self.runs[key]

    def end(self, key: str, **changes: Any) -> None:
        """End a run, as all pages hear."""
        first = {"state": "done", "ended_at": time.time(), "progress": None}
        self.runs[key] = {**self.runs[key], **first, **changes}
        self._publish("run", self.runs[key])

    def goes_on(self, key: str, **changes: Any) -> None:
        self.runs[key] = {**self.runs[key], **changes}
        self._publish("run", self.runs[key])

    def answered(self, card: Json) -> None:
        """A question was answered: its run goes on, or fails."""
        for key, run in list(self.runs.items()):
            if run["approval"] != card["id"] or run["state"] != "asking":
                continue
            if card["state"] == "denied":
                self.end(key, state="failed", code="approval.denied", message="A person said no.")
            elif card["state"] == "allowed":
                self.end(key, affected=3, change_id=self.change)

    def _history(self, query: dict[str, str]) -> Json:
        found = [
            each
            for each in self.history
            if query.get("q", "").lower() in each["statement"].lower()
            and query.get("source") in (None, each["source"])
        ]
        first = int(query.get("before", 0))
        last = first + 20
        return {"entries": found[first:last], "next": str(last) if last < len(found) else None}


def node(label: str, cost: float | None, *children: Json, **changes: Any) -> Json:
    first: Json = {
        "label": label,
        "detail": "",
        "rows": 100,
        "actual_rows": None,
        "cost": cost,
        "ms": None,
        "children": list(children),
    }
    return {**first, **changes}


def plan() -> Json:
    scan = node("Seq Scan", 96.5, detail="orders, Filter: total > 100", rows=2000)
    inner = node("Index Scan", 8.3, detail="customers_pkey on customers", rows=1)
    tree = node("Sort", 130.1, node("Hash Join", 112.4, scan, node("Hash", 8.4, inner)))
    text = "Sort  (cost=130.10)\n  ->  Hash Join\n        ->  Seq Scan on orders"
    return {"text": text, "tree": tree, "reason": ""}


def _refusal(code: str, message: str, hint: str = "") -> Json:
    return {"error": code, "message": message, "hint": hint}
