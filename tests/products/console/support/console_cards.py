"""What a console could show, as the server would answer it: rare states, long and hostile texts."""

from __future__ import annotations

import time
from typing import Any

Json = dict[str, Any]

HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
RTL = "שלום עולם"
BIDI = "admin\u202egnp.exe\u2066"
FAMILY = "👨‍👩‍👧‍👦"


def tokens(text: str) -> list[list[str]]:
    """A statement in pieces, roughly as a lexer gives them."""
    pieces: list[list[str]] = []
    for word in text.split(" "):
        if word.isupper() and word.isalpha():
            kind = "keyword"
        elif word.startswith("'"):
            kind = "string"
        elif word.isdigit():
            kind = "number"
        else:
            kind = "name"
        pieces += [[kind, word], ["space", " "]]
    return pieces[:-1]


def may(**changes: Any) -> Json:
    first = {
        "allow": True,
        "deny": True,
        "minutes": 0,
        "undo": True,
        "why_not": "",
        "passphrase": False,
    }
    return {**first, **changes}


def dry_run(**changes: Any) -> Json:
    first: Json = {
        "affected": 3,
        "columns": ["id", "customer", "status", "total"],
        "before": [[str(n), f"customer {n}", "open", None] for n in (7, 8, 9)],
        "after": [[str(n), f"customer {n}", "shipped", None] for n in (7, 8, 9)],
        "reason": "",
        "withheld": [],
        "masked": [],
        "what": "",
        "added": 0,
        "removed": 0,
        "requests": [],
        "state": None,
    }
    return {**first, **changes}


def card(number: int, **changes: Any) -> Json:
    """A question that waits; `changes` replace fields."""
    now = time.time()
    first: Json = {
        "id": f"ask-{number}",
        "digest": f"digest-{number}",
        "state": "pending",
        "asked_at": now - 40 + number,
        "askers": 1,
        "caller": {"name": "analyst", "id": "t1", "client": "claude-code", "in_console": False},
        "source": {"name": "shop", "color": number},
        "surface": "core",
        "tool": "query",
        "sentence": f"claude-code wants to change 3 rows of orders on shop ({number})",
        "agent_reason": "The parcels left this morning.",
        "effect": "write",
        "why": "the source asks a person about changes (approval_for)",
        "reason": "UPDATE of the table orders",
        "statement": tokens("UPDATE orders SET status = 'shipped' WHERE id IN ( 7, 8, 9 )"),
        "params": None,
        "withheld": False,
        "tables": ["orders"],
        "database": "",
        "schema": "main",
        "unqualified": False,
        "outside_transaction": False,
        "dry_run": dry_run(),
        "undo": {"possible": True, "reason": "", "triggers": ["orders_updated_at"]},
        "irreversible": False,
        "waiting": {"until": now + 240},
        "expires_at": now + 600,
        "decided_at": None,
        "decided_by": "",
        "decision_reason": "",
        "grant": None,
        "run": None,
        "may": may(),
    }
    return {**first, **changes}


def run(state: str = "done", **changes: Any) -> Json:
    first: Json = {
        "state": state,
        "rows": 3,
        "at": time.time(),
        "call_id": "c1",
        "change_id": "change-1",
        "undone": False,
        "message": "",
    }
    return {**first, **changes}


def change(**changes: Any) -> Json:
    first: Json = {
        "id": "change-1",
        "source": "shop",
        "at": time.time(),
        "state": "done",
        "tables": [
            {
                "table": "orders",
                "columns": ["id", "status"],
                "masked": [],
                "count": 3,
                "rows": [
                    {
                        "key": "",
                        "before": [n, "open"],
                        "after": [n, "shipped"],
                        "now": [n, "shipped"],
                    }
                    for n in ("7", "8", "9")
                ],
            }
        ],
        "count": 3,
        "conflict_rows": [],
        "conflicts": 0,
        "triggers": ["orders_updated_at"],
        "possible": True,
        "reason": "",
    }
    return {**first, **changes}


def line(number: int, **changes: Any) -> Json:
    first: Json = {
        "n": number,
        "time": time.time() - 1000 + number / 100,
        "call_id": f"call-{number}",
        "session": number % 3 + 1,
        "actor": "t1",
        "actor_name": "analyst",
        "client": "claude-code",
        "address": "127.0.0.1",
        "surface": "core",
        "tool": "query",
        "source": "shop",
        "request": "query",
        "statement": f"SELECT * FROM orders WHERE id = {number}",
        "effect": "read",
        "verdict": "allow",
        "rule": "source.access",
        "outcome": "denied" if number % 7 == 0 else "ok",
        "code": "policy.read_only" if number % 7 == 0 else "",
        "message": "The source is read-only for callers." if number % 7 == 0 else "",
        "rows": None if number % 7 == 0 else number % 50,
        "ms": 1.25,
        "approval": "",
        "event": "",
    }
    return {**first, **changes}


def session(**changes: Any) -> Json:
    now = time.time()
    first: Json = {
        "operator": {"name": "ann", "roles": [{"role": "admin", "sources": None}]},
        "page": "page-secret",
        "build": "",
        "instance": "test",
        "by": "passphrase",
        "confirmed": True,
        "idle_s": 1800,
        "ends_at": now + 3600,
        "now": now,
        "sources": [{"name": "shop", "engine": "sqlite", "dialect": "sqlite", "color": 1}],
        "demo": False,
        "four_eyes": "off",
    }
    return {**first, **changes}


def running_call(number: int, **changes: Any) -> Json:
    """A call under way."""
    first: Json = {
        "id": f"run-{number}",
        "actor_name": "analyst",
        "client": "claude-code/2.1",
        "address": "127.0.0.1",
        "surface": "core",
        "tool": "query",
        "request": "query",
        "source": {"name": "shop", "color": 3},
        "statement": f"SELECT count(*) FROM orders WHERE total > {number}",
        "withheld": False,
        "effect": "read",
        "state": "running",
        "since": time.time() - 12 - number,
        "rows": None,
        "own": False,
        "may_cancel": True,
    }
    return {**first, **changes}


def gate(id: str, place: str, state: str) -> Json:
    """A gate on the state that the console's gate shares with others."""
    seen_at = time.time() - 4
    return {"id": id, "place": place, "processes": 2, "seen_at": seen_at, "state": state}


def now_page(span: str = "hour", **changes: Any) -> Json:
    """What Now shows: an hour or a day of figures with a quiet stretch."""
    steps, step_s = (60, 60) if span == "hour" else (144, 600)
    since = (int(time.time()) // step_s - steps + 1) * step_s
    quiet = range(steps // 2, steps // 2 + steps // 10)
    calls = [0 if at in quiet else 20 + (at * 7) % 31 for at in range(steps)]
    times = [None if at in quiet else 3.0 + (at * 5) % 11 for at in range(steps)]
    figures: Json = {
        "span": span,
        "since": since,
        "step_s": step_s,
        "calls": calls,
        "asked": [count // 13 for count in calls],
        "denied": [count // 11 for count in calls],
        "failed": [count // 23 for count in calls],
        "cancelled": [0] * steps,
        "p50": times,
        "p99": [None if each is None else each * 40 for each in times],
        "total_p50": 7.3,
        "total_p99": 412.0,
        "shared": False,
        "waiting": [at % 4 // 3 for at in range(steps)],
        "complete": True,
        "missing": [],
    }
    first: Json = {
        "calls": [running_call(1), running_call(2, state="waiting"), running_call(3, rows=512)],
        "more": 0,
        "figures": figures,
        "sources": [
            {
                "name": "books",
                "color": 5,
                "status": "error",
                "error": "The server at db.example refuses the login.",
                "running": 0,
                "connections": None,
                "last_active_at": None,
            },
            {
                "name": "shop",
                "color": 3,
                "status": "connected",
                "error": "",
                "running": 2,
                "connections": 4,
                "last_active_at": time.time() - 4,
            },
        ],
        "record": {
            "problems": {},
            "checkpoint_at": time.time() - 130,
            "free_bytes": 48_300_000_000,
        },
        "webhook": webhook(),
        "gates": [
            gate("aaaa", "one.example:/state", "here"),
            gate("bbbb", "two.example:/state", "silent"),
            gate("cccc", "x.example:/state", "gone"),
        ],
        "seq": 1,
        "now": time.time(),
    }
    return {**first, **changes}


def webhook(**changes: Any) -> Json:
    first: Json = {
        "state": "ok",
        "message": "",
        "since": None,
        "sent_at": time.time() - 300,
        "waiting": 0,
        "dropped": 0,
        "digest_minutes": 0,
    }
    return {**first, **changes}
